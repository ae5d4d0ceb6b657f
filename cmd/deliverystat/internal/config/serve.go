package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"deliverystat/codecs"
)

// Roles of a process.
const (
	RoleProcessors = "processors" // owns partitions, writes the tables
	RoleAPI        = "api"        // copies the tables, answers
)

// Serve are the flags of serve, and of demo where it runs the same service.
type Serve struct {
	Naming
	Format
	Meaning
	Safety
	Sourcing

	Roles            []string      `help:"What this process does: processors, api." default:"processors,api" oneof:"processors,api"`
	Standby          bool          `help:"Keep a local copy of the partitions of others too, so that a takeover reads the last rows only. Costs the disk of the whole table, and the CPU to follow it."`
	SessionTimeout   time.Duration `help:"A replica that is silent for so long loses its partitions." default:"30s"`
	CommitInterval   time.Duration `help:"How often results are committed." default:"50ms"`
	AuditInterval    time.Duration `help:"How often the rows of each partition are counted anew and compared with its counts; 0 is never." default:"1h"`
	StaleAfter       time.Duration `help:"Answers older than this say stale: true." default:"30s"`
	MaxStaleness     time.Duration `help:"Gauges of counts older than this are not exported." default:"5m"`
	StuckAfter       string        `help:"A live delivery in one status for longer is stuck: one duration, or STATUS=DURATION,…." default:"30m" placeholder:"DURATION|STATUS=DURATION,…"`
	AcceptNewMeaning bool          `help:"Accept tables that were written with other settings; stop every processor first."`
	APITokenFile     string        `name:"api-token-file" help:"File with the bearer tokens that the API accepts, one a line." placeholder:"FILE"`
	DrainDelay       time.Duration `help:"How long a stopping replica still answers while it says that it is not ready." default:"0s"`
}

// Instance names one replica and its disk.
type Instance struct {
	InstanceID string `help:"Name of this replica, stable over restarts and unique (default: the host name)." placeholder:"NAME"`
	StateDir   string `help:"Directory of the local copies of the tables." default:"./state" placeholder:"DIR"`
}

var instanceName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// Check implements [Checker].
func (i *Instance) Check(problems *Problems) {
	if i.InstanceID != "" {
		CheckInstance(i.InstanceID, problems)
	}
	if i.StateDir == "" {
		problems.Add("state-dir", "required")
	}
}

// CheckInstance notes that a name can not be that of a replica.
func CheckInstance(name string, problems *Problems) {
	switch {
	case name == "":
		problems.Add("instance-id", "required")
	case !instanceName.MatchString(name):
		problems.Add("instance-id", "want letters, digits, dots, hyphens and underscores, got %q", name)
	}
}

// Name returns the instance ID in force.
func (i *Instance) Name() string {
	if i.InstanceID != "" {
		return i.InstanceID
	}
	return hostName()
}

// Check implements [Checker].
func (s *Serve) Check(problems *Problems) {
	s.Naming.Check(problems)
	s.Format.Check(problems)
	s.CheckUnless(s.AllowUnsafe, problems)
	s.CheckSources(s.Topics(), problems)
	s.checkProfiles(problems)
	if len(s.Roles) == 0 {
		problems.Add("roles", "want at least one of processors, api")
	}
	atLeast := func(flag string, got, least time.Duration) {
		if got < least {
			problems.Add(flag, "want at least %v, got %v", least, got)
		}
	}
	atLeast("session-timeout", s.SessionTimeout, 6*time.Second)
	atLeast("commit-interval", s.CommitInterval, time.Millisecond)
	if s.AuditInterval != 0 {
		atLeast("audit-interval", s.AuditInterval, time.Second)
	}
	atLeast("stale-after", s.StaleAfter, 100*time.Millisecond)
	atLeast("max-staleness", s.MaxStaleness, s.StaleAfter)
	atLeast("drain-delay", s.DrainDelay, 0)
	if s.CommitInterval > 10*time.Second {
		problems.Add("commit-interval", "want at most 10s, got %v", s.CommitInterval)
	}
	if s.DrainDelay > 30*time.Second {
		problems.Add("drain-delay", "want at most 30s, got %v", s.DrainDelay)
	}
	if _, err := s.Stuck(s.Lifecycle()); err != nil {
		problems.Add("stuck-after", "%v", err)
	}
}

// Has reports whether the process has a role.
func (s *Serve) Has(role string) bool { return slices.Contains(s.Roles, role) }

// Stuck returns for each live status how long a delivery may be in it. Given
// as STATUS=DURATION, the statuses that are not named are never stuck.
func (s *Serve) Stuck(l *codecs.Lifecycle) (map[codecs.Status]time.Duration, error) {
	stuck := map[codecs.Status]time.Duration{}
	if !strings.Contains(s.StuckAfter, "=") {
		d, err := time.ParseDuration(s.StuckAfter)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("want a positive duration such as 30m, or STATUS=DURATION,…, got %q", s.StuckAfter)
		}
		for i := range l.Len() {
			if status := codecs.Status(i); !l.Terminal(status) {
				stuck[status] = d
			}
		}
		return stuck, nil
	}
	for item := range strings.SplitSeq(s.StuckAfter, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		status, ok := l.Lookup(name)
		if !ok || l.Terminal(status) {
			return nil, fmt.Errorf("%q is not a live status", name)
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%s: want a positive duration, got %q", name, value)
		}
		stuck[status] = d
	}
	return stuck, nil
}

// Listen are the addresses of the two HTTP servers.
type Listen struct {
	HTTPAddress     string `name:"http-address" help:"Address of the API and the board." default:"${http_address}" placeholder:"HOST:PORT"`
	HTTPTLSCertFile string `name:"http-tls-cert-file" help:"Serve the API by TLS, with this PEM certificate and what leads to its root; read again when it changed." placeholder:"FILE"`
	HTTPTLSKeyFile  string `name:"http-tls-key-file" help:"The key of the certificate." placeholder:"FILE"`
	AdminAddress    string `help:"Address of probes, metrics and diagnostics." default:"${admin_address}" placeholder:"HOST:PORT"`
}

// Check implements [Checker].
func (l *Listen) Check(problems *Problems) {
	checkAddress("http-address", l.HTTPAddress, problems)
	checkAddress("admin-address", l.AdminAddress, problems)
	switch {
	case l.HTTPTLSCertFile != "" && l.HTTPTLSKeyFile == "":
		problems.Add("http-tls-key-file", "required by --http-tls-cert-file")
	case l.HTTPTLSKeyFile != "" && l.HTTPTLSCertFile == "":
		problems.Add("http-tls-cert-file", "required by --http-tls-key-file")
	}
}
