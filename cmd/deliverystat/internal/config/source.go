package config

import (
	"fmt"
	"slices"
	"strings"

	"deliverystat/codecs"
)

// Source is a topic whose events are republished to the input.
type Source struct {
	Topic   string
	Profile string // "" for that of the deployment
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
	seen := map[string]bool{}
	topics := s.Topics()
	for _, source := range s.SourceList() {
		switch {
		case !topicName(source.Topic):
			problems.Add("sources", "want TOPIC or TOPIC=PROFILE, got topic %q", source.Topic)
		case slices.Contains(topics.Outputs(), source.Topic):
			problems.Add("sources", "%s is written by this deployment: what is refused of it would come back for ever", source.Topic)
		case source.Topic == topics.Events:
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

// Decoder returns a decoder of the input. With sources the input holds what is
// republished from them, which are native events: where their fields are, is then
// what the profile says of the sources.
func (s *Serve) Decoder() (*codecs.Decoder, error) {
	d, err := s.Format.Decoder()
	if err != nil || len(s.Sources) == 0 {
		return d, err
	}
	return d.Native(), nil
}

// SourceDecoder returns a decoder of the records of a source: as its profile
// says, or else as that of the deployment does.
func (s *Serve) SourceDecoder(source Source) (*codecs.Decoder, error) {
	name := source.Profile
	if name == "" {
		name = s.Profile
	}
	p, err := ReadProfile(name)
	if err != nil {
		return nil, err
	}
	d, err := p.NewSourceDecoder(s.EventsFormat, s.Lifecycle())
	if err != nil {
		return nil, fmt.Errorf("choosing decoder: %w", err)
	}
	return d.AnyKey(), nil
}
