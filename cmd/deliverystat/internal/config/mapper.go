package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// collecting is a kong mapper that notes a bad value and goes on, where kong's
// own would end the parse at the first one. It also checks the tag
// oneof:"a,b", for kong's enum ends the parse too.
type collecting struct {
	kong.Mapper
	into *parse
}

// Decode implements kong.Mapper.
func (c collecting) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	flag := ctx.Value.Name
	before := reflect.New(target.Type()).Elem()
	before.Set(target)
	if err := c.Mapper.Decode(ctx, target); err != nil {
		target.Set(before)
		c.into.bad(flag, "%v", err)
		return nil
	}
	if allowed := ctx.Value.Tag.Get("oneof"); allowed != "" {
		for _, v := range values(target) {
			if !slices.Contains(strings.Split(allowed, ","), v) {
				c.into.bad(flag, "%q is not one of %s", v, strings.ReplaceAll(allowed, ",", ", "))
			}
		}
	}
	return nil
}

func values(v reflect.Value) []string {
	if list, ok := reflect.TypeAssert[[]string](v); ok {
		return list
	}
	return []string{v.String()}
}

// collectingBool adds what kong asks of the mapper of a flag without a value.
type collectingBool struct{ collecting }

// IsBool implements kong.BoolMapper.
func (collectingBool) IsBool() bool { return true }

// list reads "a, b,c".
func list(ctx *kong.DecodeContext, target reflect.Value) error {
	var value string
	if err := ctx.Scan.PopValueInto("list", &value); err != nil {
		return err
	}
	items := []string{}
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	target.Set(reflect.ValueOf(items))
	return nil
}

// mappers returns the mappers of all types that options have.
func (p *parse) mappers() []kong.Option {
	defaults := kong.NewRegistry().RegisterDefaults()
	wrap := func(m kong.Mapper) collecting { return collecting{m, p} }
	options := []kong.Option{
		kong.TypeMapper(reflect.TypeFor[[]string](), wrap(kong.MapperFunc(list))),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), wrap(kong.MapperFunc(duration))),
		kong.KindMapper(reflect.Bool, collectingBool{wrap(defaults.ForType(reflect.TypeFor[bool]()))}),
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[int16](),
		reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[float64](),
	} {
		options = append(options, kong.KindMapper(t.Kind(), wrap(defaults.ForType(t))))
	}
	return options
}

// duration reads Go's syntax only: a bare number has no unit.
func duration(ctx *kong.DecodeContext, target reflect.Value) error {
	var value string
	if err := ctx.Scan.PopValueInto("duration", &value); err != nil {
		return err
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return errDuration(value)
	}
	target.SetInt(int64(d))
	return nil
}

type errDuration string

func (e errDuration) Error() string {
	return "want a duration such as 50ms, 30s, 24h, got \"" + string(e) + "\""
}
