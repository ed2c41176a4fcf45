# Prints what `go test -bench` measured as a table: a line for each benchmark and
# metric, with the median of all runs and between what they lie. Lines that are not
# of benchmarks, such as failures, go through.

/^Benchmark/ && NF >= 4 {
	name = $1
	sub(/-[0-9]+$/, "", name)
	sub(/^Benchmark/, "", name)
	for (i = 3; i < NF; i += 2) {
		key = name SUBSEP $(i + 1)
		if (!(key in runs)) order[++keys] = key
		values[key, ++runs[key]] = $i + 0
	}
	next
}
/^(goos|goarch|pkg|cpu|PASS|ok|\?|testing:)/ { next }
{ print }

function sort(key, n,   i, j, v) {
	for (i = 2; i <= n; i++) {
		v = values[key, i]
		for (j = i - 1; j > 0 && values[key, j] > v; j--) values[key, j + 1] = values[key, j]
		values[key, j + 1] = v
	}
}

END {
	if (keys) printf "%-50s %14s  %-26s %s\n", "benchmark", "median", "unit", "least to most"
	for (k = 1; k <= keys; k++) {
		key = order[k]
		n = runs[key]
		sort(key, n)
		split(key, part, SUBSEP)
		range = n > 1 ? sprintf("%.6g to %.6g of %d", values[key, 1], values[key, n], n) : ""
		printf "%-50s %14.6g  %-26s %s\n", part[1] == last ? "" : part[1], values[key, int((n + 1) / 2)], part[2], range
		last = part[1]
	}
}
