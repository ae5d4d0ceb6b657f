//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/broker"
	"deliverystat/e2e/kafka"
)

const clientSecret = "swordfish"

// secured is a broker that allows nothing by itself.
type secured struct {
	*broker.Secured
	t      *testing.T
	issuer *broker.Issuer
	client *kafka.Client // may do everything
	dir    string
}

func startSecured(t *testing.T, tokenLife time.Duration) *secured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	issuer, err := broker.NewIssuer(clientSecret, tokenLife)
	require.NoError(t, err)
	t.Cleanup(issuer.Close)
	dir := t.TempDir()
	b, err := broker.StartSecured(ctx, dir, issuer)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return &secured{Secured: b, t: t, issuer: issuer, client: connect(t, b.Cluster), dir: dir}
}

// file writes a file for a flag.
func (s *secured) file(name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.WriteFile(path, content, 0o600))
	return path
}

func (s *secured) authority() string {
	return "--kafka-tls-ca-file=" + s.file("authority.pem", s.Authority.PEM)
}

// password makes a user and returns the flags to log in with.
func (s *secured) password(user string) []string {
	s.t.Helper()
	require.NoError(s.t, s.client.CreateUser(s.t.Context(), user, "of "+user))
	return []string{
		"--kafka-brokers=" + s.Login, s.authority(), "--kafka-sasl-mechanism=SCRAM-SHA-512", "--kafka-sasl-user=" + user,
		"--kafka-sasl-password-file=" + s.file(user+".password", []byte("of "+user+"\n")),
	}
}

// acls are the lines of the binary that let user run a deployment.
func acls(d *deployment, user string, flags ...string) []kafka.Permission {
	d.t.Helper()
	args := append([]string{"topics", "acls", "--topic-prefix=" + d.prefix, "--principal=User:" + user}, flags...)
	printed, err := binary.Run(d.t.Context(), nil, args...)
	require.NoError(d.t, err)
	require.Zero(d.t, printed.ExitCode, printed.Stderr)
	permissions, err := kafka.ReadPermissions(strings.Split(strings.TrimSpace(printed.Stdout), "\n"))
	require.NoError(d.t, err)
	return permissions
}

// A deployment counts exactly by each way to log in, with the permissions that
// `topics acls` prints and no other.
func TestEachLoginCountsExactly(t *testing.T) {
	s := startSecured(t, 10*time.Second)
	certificate, key, err := s.Authority.Issue("by-certificate")
	require.NoError(t, err)
	bearer := []string{"--kafka-brokers=" + s.Login, s.authority(), "--kafka-sasl-mechanism=OAUTHBEARER"}
	for user, flags := range map[string][]string{
		"by-password": s.password("by-password"),
		"by-certificate": {
			"--kafka-brokers=" + s.Mutual, s.authority(),
			"--kafka-tls-cert-file=" + s.file("client.pem", certificate), "--kafka-tls-key-file=" + s.file("client.key", key),
		},
		"by-credentials": append(slices.Clone(bearer), "--kafka-sasl-token-url="+s.issuer.TokenURL(), "--kafka-sasl-user=by-credentials",
			"--kafka-sasl-password-file="+s.file("client.secret", []byte(clientSecret))),
	} {
		t.Run(user, func(t *testing.T) {
			d := newDeploymentOn(t, s.Cluster)
			d.createTopics()
			require.NoError(t, s.client.Allow(t.Context(), acls(d, user)...))
			one := d.serve("one", flags...)
			waitReady(t, one)

			truth := d.simulate("--events=20000", "--deliveries=4000", "--seed=3", "--rate=2000", "--malformed=0.01").wait(t)

			d.requireExact(truth, one)
			code, err := one.Stop()
			require.NoError(t, err)
			require.Zero(t, code)
		})
	}
	require.Greater(t, s.issuer.Issued(), int64(1), "tokens that expire in the midst of it are renewed")
}

// What `topics acls` prints is what is needed. Enough: the authorizer refuses
// nothing. No more: each permission is used by a request that does something,
// as the authorizer itself tells.
func TestThePermissionsAreMinimal(t *testing.T) {
	s := startSecured(t, time.Hour)
	d := newDeploymentOn(t, s.Cluster)
	d.createTopics()
	source := d.topic("source")
	require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{Name: source, Partitions: 3}))
	granted := acls(d, "works", "--roles=processors", "--sources="+source)
	granted = append(granted, acls(d, "answers", "--roles=api")...)
	require.NoError(t, s.client.Allow(t.Context(), granted...))
	works := append(s.password("works"), "--roles=processors", "--sources="+source)
	one, two := d.serve("one", works...), d.serve("two", works...)
	answers := d.serve("answers", append(s.password("answers"), "--roles=api")...)
	waitReady(t, one, two, answers)

	simulation := d.simulate("--events-topic="+source, "--events=20000", "--deliveries=4000", "--seed=4", "--rate=4000")
	d.produce(kafka.Record{Topic: source, Value: []byte("no event")}) // a dead letter
	d.waitProduced(5000)
	require.NoError(t, one.Kill()) // the other one takes over, and ends what it left open
	truth := simulation.wait(t)
	d.awaitSources(map[string]int32{source: 3})
	d.requireExact(truth, answers)

	decisions, err := s.Decisions()
	require.NoError(t, err)
	used := map[kafka.Permission]bool{}
	for _, made := range decisions {
		if made.User != "works" && made.User != "answers" {
			continue
		}
		if !made.Allowed {
			// Of all topics, and of those of a transaction, we are told which we may see.
			require.Equal(t, "DESCRIBE", made.Operation, "%+v", made)
			require.Contains(t, []string{"Metadata", "DescribeTransactions"}, made.Request, "%+v", made)
			continue
		}
		for _, p := range granted {
			if p.User == made.User && p.Kind == made.Kind && p.Operation == operation(made.Operation) &&
				(p.Name == made.Name || p.Prefix && strings.HasPrefix(made.Name, p.Name)) {
				used[p] = true
			}
		}
	}
	for _, p := range granted {
		require.True(t, used[p], "%+v is never needed", p)
	}
}

// operation turns DESCRIBE_CONFIGS into DescribeConfigs.
func operation(logged string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.ToLower(logged), "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// Without any one of the permissions serve names the one that is missing.
func TestAMissingPermissionIsNamed(t *testing.T) {
	s := startSecured(t, time.Hour)
	d := newDeploymentOn(t, s.Cluster)
	d.createTopics()
	source := d.topic("source")
	require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{Name: source, Partitions: 1}))
	all := acls(d, "nobody", "--sources="+source)
	for i, missing := range all {
		user := fmt.Sprintf("user-%d", i)
		for k, p := range all {
			if p.User = user; k != i {
				require.NoError(t, s.client.Allow(t.Context(), p))
			}
		}
		r := d.replica(user, append(s.password(user), "--sources="+source)...)
		require.NoError(t, r.Start())
		want := fmt.Sprintf("not allowed: %s on %s %s", missing.Operation, strings.ToLower(missing.Kind), missing.Name)
		if missing.Kind == "TransactionalId" {
			// The brokers do not tell in advance; so it goes on, and is refused.
			want = fmt.Sprintf("producer %s%s: kafka server: Transactional ID authorization failed", missing.Name, user)
		}
		eventually(t, "the log says "+want, func() (string, bool) {
			log, err := os.ReadFile(r.LogFile())
			require.NoError(t, err)
			return string(log), strings.Contains(string(log), want)
		})
		if missing.Kind != "TransactionalId" {
			<-r.Process().Done()
			require.Equal(t, 2, r.Process().ExitCode())
		}
		require.NoError(t, r.Kill())
	}
}

// A password that is changed under a running replica is read from its file
// again; nobody restarts anything.
func TestARenewedPasswordNeedsNoRestart(t *testing.T) {
	s := startSecured(t, time.Hour)
	d := newDeploymentOn(t, s.Cluster)
	d.createTopics()
	require.NoError(t, s.client.Allow(t.Context(), acls(d, "me")...))
	one := d.serve("one", s.password("me")...)
	waitReady(t, one)

	require.NoError(t, s.client.CreateUser(t.Context(), "me", "changed"))
	s.file("me.password", []byte("changed\n"))
	// All connections end and have to be made anew.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.StopNode(1))
	require.NoError(t, s.StartNode(1))
	require.NoError(t, s.WaitReady(ctx))

	d.requireExact(d.simulate("--events=2000", "--deliveries=100", "--seed=6").wait(t), one)
}
