// Package config reads the settings of a command: flags, environment
// variables, and a YAML file, in this order of precedence, then defaults.
//
// Every flag --some-name has an environment variable DELIVERYSTAT_SOME_NAME and
// a file key some-name. In the file, keys may be nested at any hyphen:
//
//	kafka:
//	  brokers: [kafka-0:9092, kafka-1:9092]
//	  tls: {ca-file: /etc/kafka/ca.pem}
//	commit-interval: 50ms
//
// One file may serve all commands: a key that another command knows is
// accepted. A key that no command knows is an error, and so is an unknown flag.
// An unknown DELIVERYSTAT_ variable is only a warning, for Kubernetes injects
// some into every container of a namespace. An empty variable counts as unset.
//
// Promises. All faults of one invocation are reported at once, one line each,
// as a [UsageError]. What is read from a secret's file never shows in a log, an
// error, JSON or YAML: see [Secret].
//
// The option structs say what the commands have in common, and build from it
// what the packages below them are configured with.
package config
