package broker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"deliverystat/e2e/process"
)

// Secured is a node that asks who is there and allows only what an ACL says,
// beside the plain listener of every node, whose clients may do everything.
type Secured struct {
	*Cluster
	// Login is the address for TLS and a login by SCRAM-SHA-512 or OAUTHBEARER.
	Login string
	// Mutual is the address for TLS with a client certificate, whose common name
	// is the user.
	Mutual    string
	Authority *Authority
}

// StartSecured starts one node with everything in dir, which trusts the tokens
// of issuer.
func StartSecured(ctx context.Context, dir string, issuer *Issuer) (*Secured, error) {
	authority, err := NewAuthority()
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.Issue("broker")
	if err != nil {
		return nil, err
	}
	keystore, truststore := filepath.Join(dir, "broker.pem"), filepath.Join(dir, "authority.pem")
	if err := errors.Join(
		os.WriteFile(keystore, append(key, certificate...), 0o600),
		os.WriteFile(truststore, authority.PEM, 0o600),
	); err != nil {
		return nil, fmt.Errorf("writing the broker's certificates: %w", err)
	}
	ports, err := process.FreePorts(2)
	if err != nil {
		return nil, err
	}
	c, err := allocate(ctx, dir, 1)
	if err != nil {
		return nil, err
	}
	s := &Secured{
		Cluster: c, Authority: authority,
		Login: fmt.Sprintf("127.0.0.1:%d", ports[0]), Mutual: fmt.Sprintf("127.0.0.1:%d", ports[1]),
	}
	plain := "PLAINTEXT://" + c.nodes[0].address()
	clients := fmt.Sprintf("%s,LOGIN://%s,MUTUAL://%s", plain, s.Login, s.Mutual)
	c.overrides = append([]string{
		fmt.Sprintf("listeners=%s,CONTROLLER://127.0.0.1:%d", clients, c.nodes[0].controllerPort),
		"advertised.listeners=" + clients,
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL,MUTUAL:SSL",
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + keystore,
		"ssl.truststore.type=PEM", "ssl.truststore.location=" + truststore,
		"listener.name.mutual.ssl.client.auth=required",
		"ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/",
		"sasl.enabled.mechanisms=SCRAM-SHA-512,OAUTHBEARER",
		"listener.name.login.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS", // who comes by the plain listener
	}, issuer.settings("login")...)
	c.jvm = []string{"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + issuer.keysURL()}
	c.log4j = log4j + "logger.authorizer.name = kafka.authorizer.logger\nlogger.authorizer.level = DEBUG\n"
	if err := c.formatAll(ctx); err != nil {
		return nil, err
	}
	return s, c.startAll(ctx)
}

// Decision is one that the authorizer took.
type Decision struct {
	Allowed                     bool
	User, Operation, Kind, Name string
	Request                     string // such as "Fetch"
}

// decision is how the StandardAuthorizer logs it.
var decision = regexp.MustCompile(`Principal = User:(\S+) is (Allowed|Denied) operation = (\S+) from host = \S+ ` +
	`on resource = (\S+?):LITERAL:(\S+) for request = (\S+)`)

// Decisions returns all decisions so far, in order.
func (s *Secured) Decisions() ([]Decision, error) {
	log, err := os.ReadFile(s.LogFile(1))
	if err != nil {
		return nil, fmt.Errorf("reading the broker's log: %w", err)
	}
	var all []Decision
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), "Principal = ") {
			continue
		}
		m := decision.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, fmt.Errorf("reading the broker's log: unknown decision %q", lines.Text())
		}
		all = append(all, Decision{Allowed: m[2] == "Allowed", User: m[1], Operation: m[3], Kind: m[4], Name: m[5], Request: m[6]})
	}
	return all, lines.Err()
}
