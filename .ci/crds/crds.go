// Package crds names the types of the Prometheus Operator, so that controller-gen
// finds them: .ci/chart makes schemas of them.
package crds

import _ "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1" // the types
