package config

import (
	"fmt"
	"slices"
	"strings"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// Source is a topic whose events are republished to the input.
type Source struct {
	Topic   string
	Profile string // "" for that of the deployment
}

// Sourcing names the topics that a deployment republishes to its input.
type Sourcing struct {
	Sources []string `help:"Topics whose key is not the delivery ID, or whose partitioner or shape differs: their events are republished to the input." placeholder:"TOPIC[=PROFILE],…"`
}

// SourceList returns the sources in the order given.
func (s *Sourcing) SourceList() []Source {
	var list []Source
	for _, item := range s.Sources {
		topic, profile, _ := strings.Cut(strings.TrimSpace(item), "=")
		list = append(list, Source{topic, profile})
	}
	return list
}

// Names returns the topics of the sources.
func (s *Sourcing) Names() []string {
	var names []string
	for _, source := range s.SourceList() {
		names = append(names, source.Topic)
	}
	return names
}

// CheckSources notes sources that a deployment with these topics can not have.
func (s *Sourcing) CheckSources(topics processors.Topics, problems *Problems) {
	seen := map[string]bool{}
	for _, name := range s.Names() {
		switch {
		case !topicName(name):
			problems.Add("sources", "want TOPIC or TOPIC=PROFILE, got topic %q", name)
		case slices.Contains(topics.Outputs(), name):
			problems.Add("sources", "%s is written by this deployment: what is refused of it would come back for ever", name)
		case name == topics.Events:
			problems.Add("sources", "%s is the input itself; --events-topic names another topic to republish to", name)
		case seen[name]:
			problems.Add("sources", "%s is named twice", name)
		}
		seen[name] = true
	}
}

// checkProfiles notes sources whose profile can not be used.
func (s *Serve) checkProfiles(problems *Problems) {
	for _, source := range s.SourceList() {
		if _, err := s.SourceDecoder(source); err != nil {
			problems.Add("sources", "%s: %v", source.Topic, err)
		}
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
