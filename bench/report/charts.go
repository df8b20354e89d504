package report

import (
	"fmt"
	"slices"
)

// charts returns those of one scenario for which there is data.
func charts(all []group, places *places) ([]chart, error) {
	found, err := barCharts(all, places)
	if err != nil {
		return nil, err
	}
	var more []chart
	switch all[0].scenario {
	case throughput, snapshot:
		more, err = rateCharts(all, places)
	case scale:
		more, err = scaleCharts(all, places)
	case contention:
		more, err = contentionCharts(all, places)
	}
	return append(found, more...), err
}

// comparisons are the setups in which two or more subjects ran. The cases of
// throughput are ways to deploy a subject, not other work: they go together.
func comparisons(all []group) [][]group {
	setups := partition(all, func(g group) identity {
		id := g.setup()
		if id.scenario == throughput {
			id.condition = ""
		}
		return id
	})
	return slices.DeleteFunc(setups, func(setup []group) bool { return len(subjects(setup)) < 2 })
}

func barCharts(all []group, places *places) ([]chart, error) {
	var found []chart
	setups := comparisons(all)
	for i, setup := range setups {
		c, err := bars(setup, places, numbered(slug(all[0].scenario)+"-subjects", i, len(setups)))
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, nil
}

// rateCharts have a line for each subject of throughput, and for a snapshot the
// same work with and without it.
func rateCharts(all []group, places *places) ([]chart, error) {
	setups := comparisons(all)
	if all[0].scenario == snapshot {
		setups = partition(all, func(g group) identity {
			id := g.identity
			id.subject, id.condition, id.parameters.Batch = "", "", 0
			return id
		})
	}
	if len(setups) == 0 {
		setups = [][]group{all}
	}
	var found []chart
	for i, setup := range setups {
		c, ok, err := ratesOverTime(setup, places, numbered(slug(all[0].scenario)+"-over-time", i, len(setups)))
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, c)
		}
	}
	return found, nil
}

// numbered tells charts of the same kind apart, if there are several.
func numbered(name string, i, of int) string {
	if of == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i+1)
}
