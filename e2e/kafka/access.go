package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateUser makes a user who logs in by SCRAM-SHA-512, or gives one another
// password.
func (c *Client) CreateUser(ctx context.Context, name, password string) error {
	response, err := kadm.NewClient(c.kgo).AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{
		User: name, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password,
	}})
	if err != nil {
		return fmt.Errorf("creating user %s: %w", name, err)
	}
	if err := response.Error(); err != nil {
		return fmt.Errorf("creating user %s: %w", name, err)
	}
	return nil
}

// Permission is one operation that a user may do on one resource.
type Permission struct {
	User, Operation, Kind, Name string // Kind is Topic, Group or TransactionalId
	Prefix                      bool   // Name is the beginning of a name
}

// ReadPermissions reads lines for kafka-acls.sh.
func ReadPermissions(lines []string) ([]Permission, error) {
	kinds := map[string]string{"--topic": "Topic", "--group": "Group", "--transactional-id": "TransactionalId"}
	var all []Permission
	for _, line := range lines {
		words := strings.Fields(line)
		var p Permission
		var operations []string
		for i := 1; i+1 < len(words); i++ {
			switch word, value := words[i], words[i+1]; word {
			case "--allow-principal":
				p.User = strings.TrimPrefix(value, "User:")
			case "--operation":
				operations = append(operations, value)
			case "--resource-pattern-type":
				p.Prefix = value == "prefixed"
			case "--topic", "--group", "--transactional-id":
				p.Kind, p.Name = kinds[word], value
			}
		}
		if p.User == "" || p.Kind == "" || len(operations) == 0 {
			return nil, fmt.Errorf("reading permissions: %q", line)
		}
		for _, p.Operation = range operations {
			all = append(all, p)
		}
	}
	return all, nil
}

// Allow grants permissions.
func (c *Client) Allow(ctx context.Context, permissions ...Permission) error {
	admin := kadm.NewClient(c.kgo)
	for _, p := range permissions {
		operation, err := kmsg.ParseACLOperation(p.Operation)
		if err != nil {
			return fmt.Errorf("allowing %+v: %w", p, err)
		}
		pattern := kadm.ACLPatternLiteral
		if p.Prefix {
			pattern = kadm.ACLPatternPrefixed
		}
		b := kadm.NewACLs().Allow("User:" + p.User).AllowHosts("*").Operations(operation).ResourcePatternType(pattern)
		switch p.Kind {
		case "Topic":
			b.Topics(p.Name)
		case "Group":
			b.Groups(p.Name)
		default:
			b.TransactionalIDs(p.Name)
		}
		results, err := admin.CreateACLs(ctx, b)
		if err != nil {
			return fmt.Errorf("allowing %+v: %w", p, err)
		}
		for _, r := range results {
			if r.Err != nil {
				return fmt.Errorf("allowing %+v: %w", p, r.Err)
			}
		}
	}
	return nil
}
