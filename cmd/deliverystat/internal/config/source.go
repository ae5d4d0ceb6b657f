package config

import (
	"fmt"
	"strings"

	"deliverystat/codecs"
)

// Source is a topic whose events are republished to the input.
type Source struct {
	Topic   string
	Profile string // "" for the format of the input
}

// SourceList returns the sources in the order given.
func (s *Serve) SourceList() []Source {
	var list []Source
	for _, item := range s.Sources {
		topic, profile, _ := strings.Cut(strings.TrimSpace(item), "=")
		list = append(list, Source{topic, profile})
	}
	return list
}

func (s *Serve) checkSources(problems *Problems) {
	seen := map[string]bool{s.Topics().Events: true}
	for _, source := range s.SourceList() {
		switch {
		case !topicName(source.Topic):
			problems.Add("sources", "want TOPIC or TOPIC=PROFILE, got topic %q", source.Topic)
		case source.Topic == s.Topics().Events:
			problems.Add("sources", "%s is the input itself; --events-topic names another topic to republish to", source.Topic)
		case seen[source.Topic]:
			problems.Add("sources", "%s is named twice", source.Topic)
		default:
			if _, err := s.SourceDecoder(source); err != nil {
				problems.Add("sources", "%s: %v", source.Topic, err)
			}
		}
		seen[source.Topic] = true
	}
}

// SourceDecoder returns a decoder of the records of a source.
func (s *Serve) SourceDecoder(source Source) (*codecs.Decoder, error) {
	format := s.Format
	if source.Profile != "" {
		return nil, fmt.Errorf("profile %q is not known", source.Profile)
	}
	d, err := format.Decoder()
	if err != nil {
		return nil, err
	}
	return d.AnyKey(), nil
}
