package config

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramClient returns what sarama needs to log in with a SCRAM mechanism.
func scramClient(mechanism sarama.SASLMechanism) func() sarama.SCRAMClient {
	hash := scram.SHA512
	if mechanism == sarama.SASLTypeSCRAMSHA256 {
		hash = scram.SHA256
	}
	return func() sarama.SCRAMClient { return &conversation{hash: hash} }
}

// conversation is one login.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

// Begin implements sarama.SCRAMClient.
func (c *conversation) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err != nil {
		return fmt.Errorf("preparing login: %w", err)
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
