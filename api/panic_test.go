package api

import "net/http"

func handlePanic(late bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if late {
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(`{"counts":{`))
		}
		panic("secret of the inside")
	}
}
