package chaos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/chaos"
)

func TestAPlanDependsOnItsSeedOnly(t *testing.T) {
	first := chaos.Plan(7, 40)
	require.Equal(t, first, chaos.Plan(7, 40))
	require.NotEqual(t, chaos.Plan(7, 40), chaos.Plan(8, 40))
	require.Equal(t, chaos.Plan(7, 40)[:15], chaos.Plan(7, 15), "a longer run begins as a shorter one")
}

func TestEachFaultComesUpEquallyOften(t *testing.T) {
	often := map[chaos.Fault]int{}
	for _, s := range chaos.Plan(3, 5*len(chaos.Faults)) {
		often[s.Fault]++
	}

	require.Len(t, often, len(chaos.Faults))
	for fault, n := range often {
		require.Equal(t, 5, n, fault)
	}
}
