package config

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"deliverystat/codecs"
)

// EnvPrefix begins the name of every environment variable.
const EnvPrefix = "DELIVERYSTAT_"

// ErrHelp says that help was asked for, and printed.
var ErrHelp = errors.New("help printed")

// Invocation is how a command was called.
type Invocation struct {
	Args           []string // without the name of the program
	Env            []string // "NAME=value", as os.Environ returns them
	Stdout, Stderr io.Writer
}

// Parsed is an invocation that was understood.
type Parsed struct {
	Context *kong.Context
	// UnknownVariables are the variables with our prefix that no flag has.
	UnknownVariables []string
}

// Common are the flags that every command has.
type Common struct {
	Config    string `help:"YAML file with settings: flag names without their hyphens in front." placeholder:"FILE"`
	LogFormat string `help:"Format of the log: text, json, or auto (text on a terminal)." default:"auto" oneof:"auto,text,json"`
	LogLevel  string `help:"Least level that is logged: debug, info, warn, error." default:"info" oneof:"debug,info,warn,error"`
}

// Checker is implemented by a command whose options can be wrong together.
type Checker interface {
	// Check notes what is wrong with the options.
	Check(*Problems)
}

// Parse fills grammar, a pointer to a struct of commands, from an invocation.
// It returns ErrHelp if help was printed, or a *UsageError with all faults.
func Parse(grammar any, in Invocation, options ...kong.Option) (*Parsed, error) {
	args := in.Args
	var unknown []string
	for {
		p := &parse{env: environment(in.Env), sources: map[string]string{}}
		ctx, err := p.parse(grammar, args, in, options)
		switch {
		case p.helped:
			return nil, ErrHelp
		case err == nil:
			return p.finish(ctx, unknown)
		}
		rest, found := withoutUnknownFlag(args, err)
		if !found {
			p.problems.AddLine("%v", err)
		}
		unknown = append(unknown, err.Error())
		if args = rest; !found {
			return nil, &UsageError{append(unknown[:len(unknown)-1], p.problems.lines...)}
		}
	}
}

// withoutUnknownFlag returns args without the flag that err complains of, and
// without its value, so that the rest can be judged too.
func withoutUnknownFlag(args []string, err error) (rest []string, found bool) {
	name, found := strings.CutPrefix(err.Error(), "unknown flag ")
	if !found {
		return nil, false
	}
	name, _, _ = strings.Cut(name, ",")
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, name+"="):
			return slices.Concat(args[:i], args[i+1:]), true
		case arg != name:
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			return slices.Concat(args[:i], args[i+2:]), true
		default:
			return slices.Concat(args[:i], args[i+1:]), true
		}
	}
	return nil, false
}

// parse is one pass over the arguments.
type parse struct {
	env      map[string]string
	file     *file
	problems Problems
	sources  map[string]string // where a value not given by flag comes from
	helped   bool
	known    []string // names of the flags of all commands
}

func (p *parse) parse(grammar any, args []string, in Invocation, options []kong.Option) (*kong.Context, error) {
	options = slices.Concat([]kong.Option{
		kong.Name("deliverystat"),
		kong.Writers(in.Stdout, in.Stderr),
		kong.Exit(func(int) { p.helped = true }),
		kong.Vars{"profiles": strings.Join(codecs.BuiltinProfiles(), ", ")},
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true}),
		kong.ValueFormatter(helpWithEnv),
		kong.WithBeforeResolve(p.openFile),
		kong.Resolvers(kong.ResolverFunc(p.resolve)),
	}, p.mappers(), options)
	k, err := kong.New(grammar, options...)
	if err != nil {
		return nil, fmt.Errorf("building the command line: %w", err)
	}
	p.known = flagNames(k.Model.Node)
	return k.Parse(args)
}

func (p *parse) finish(ctx *kong.Context, unknown []string) (*Parsed, error) {
	if checker, ok := reflect.TypeAssert[Checker](ctx.Selected().Target.Addr()); ok {
		checker.Check(&p.problems)
	}
	if lines := slices.Concat(unknown, p.problems.lines); len(lines) > 0 {
		return nil, &UsageError{lines}
	}
	return &Parsed{Context: ctx, UnknownVariables: p.unknownVariables()}, nil
}

// bad notes a value that can not be read, and where it comes from.
func (p *parse) bad(flag, format string, args ...any) {
	if source := p.sources[flag]; source != "" {
		format += " (from " + source + ")"
	}
	p.problems.Add(flag, format, args...)
}

// openFile reads the config file, if there is one, before flags are resolved.
func (p *parse) openFile(ctx *kong.Context) error {
	path := p.env["CONFIG"]
	for _, flag := range ctx.Flags() {
		if flag.Name == "config" {
			if given, _ := ctx.FlagValue(flag).(string); given != "" {
				path = given
			}
		}
	}
	if path != "" && p.file == nil {
		p.file = readFile(path, func(flag string) bool { return flag != "config" && slices.Contains(p.known, flag) }, &p.problems)
	}
	return nil
}

// resolve finds a value for a flag that the arguments do not give.
func (p *parse) resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if value := p.env[variable(flag.Name)]; value != "" {
		p.sources[flag.Name] = EnvPrefix + variable(flag.Name)
		return value, nil
	}
	if p.file != nil {
		if value, ok := p.file.values[flag.Name]; ok {
			p.sources[flag.Name] = fmt.Sprintf("%s:%d", p.file.path, p.file.lines[flag.Name])
			return value, nil
		}
	}
	return nil, nil //nolint:nilnil // kong's way to say that this resolver knows no value
}

func (p *parse) unknownVariables() []string {
	var unknown []string
	for name := range p.env {
		if !slices.ContainsFunc(p.known, func(flag string) bool { return variable(flag) == name }) {
			unknown = append(unknown, EnvPrefix+name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// environment returns our variables without their prefix.
func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, entry := range environ {
		if name, ok := strings.CutPrefix(entry, EnvPrefix); ok {
			name, value, _ := strings.Cut(name, "=")
			env[name] = value
		}
	}
	return env
}

// variable returns the environment variable of a flag, without the prefix.
func variable(flag string) string {
	return strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// helpWithEnv names in --help the environment variable of each flag, and its
// default where the placeholder hides that.
func helpWithEnv(v *kong.Value) string {
	if v.Flag == nil || v.Name == "help" {
		return v.Help
	}
	notes := "$" + EnvPrefix + variable(v.Name)
	if v.Flag.PlaceHolder != "" && v.HasDefault && v.Default != "" {
		notes = "default " + v.Default + "; " + notes
	}
	return strings.TrimSuffix(v.Help, ".") + " (" + notes + ")."
}

func flagNames(node *kong.Node) []string {
	var names []string
	for _, flag := range node.Flags {
		if flag.Name != "help" {
			names = append(names, flag.Name)
		}
	}
	for _, child := range node.Children {
		names = append(names, flagNames(child)...)
	}
	return names
}

// Effective returns the settings of the selected command by flag name, as they
// are in force.
func (p *Parsed) Effective() map[string]string {
	effective := map[string]string{}
	for _, flag := range p.Context.Flags() {
		if flag.Name == "help" {
			continue
		}
		if list, ok := reflect.TypeAssert[[]string](flag.Target); ok {
			effective[flag.Name] = strings.Join(list, ",")
			continue
		}
		effective[flag.Name] = fmt.Sprint(flag.Target.Interface())
	}
	return effective
}
