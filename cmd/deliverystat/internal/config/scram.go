package config

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramClient returns what sarama needs to log in with a SCRAM mechanism. The
// password is read at each login, so that one that is changed needs no restart.
func scramClient(mechanism sarama.SASLMechanism, passwordFile string) func() sarama.SCRAMClient {
	hash := scram.SHA512
	if mechanism == sarama.SASLTypeSCRAMSHA256 {
		hash = scram.SHA256
	}
	return func() sarama.SCRAMClient { return &conversation{hash: hash, passwordFile: passwordFile} }
}

// conversation is one login.
type conversation struct {
	hash         scram.HashGeneratorFcn
	passwordFile string
	*scram.ClientConversation
}

// Begin implements sarama.SCRAMClient.
func (c *conversation) Begin(user, _, authorization string) error {
	password, err := ReadSecret(c.passwordFile)
	if err != nil {
		return fmt.Errorf("--kafka-sasl-password-file: %w", err)
	}
	client, err := c.hash.NewClient(user, password.Reveal(), authorization)
	if err != nil {
		return fmt.Errorf("preparing login: %w", err)
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
