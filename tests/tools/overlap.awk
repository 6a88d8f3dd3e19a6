# The file of bench --times, of two streams: whether each one's runs are in their order, and
# some copy of one lies within the other's network.
/"startH2dMs"/ { start = $2 + 0 }
/"endH2dMs"/ { copied = $2 + 0 }
/"endComputeMs"/ { computed = $2 + 0 }
/"endD2hMs"/ { end = $2 + 0 }
/"stream"/ {
    s = $2 + 0
    k = n[s]++
    if (start > copied || copied > computed || computed > end ||
        (k && start + 1e-6 < ends[s, k - 1]))
        wrong++
    starts[s, k] = start
    in_at[s, k] = copied
    out_at[s, k] = computed
    ends[s, k] = end
}
END {
    for (s = 0; s < 2; s++)
        for (i = 0; i < n[s]; i++) {
            while (at[s] < n[1 - s] - 1 && out_at[1 - s, at[s]] < starts[s, i])
                at[s]++
            if (starts[s, i] >= in_at[1 - s, at[s] + 0] &&
                in_at[s, i] <= out_at[1 - s, at[s] + 0])
                beside++
        }
    print (wrong || n[0] + n[1] < 4000 ? wrong + 0 " out of order" : "in order") ",",
        beside ? "beside each other" : "apart"
}
