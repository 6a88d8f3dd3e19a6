/* SPDX-License-Identifier: Apache-2.0
 *
 * The quantised network: what its layers compute, lose and get back, and what a budget
 * keeps.
 */
#include "tests/calibrate/small_net.h"

static void open_quantised(struct bench *b, struct probe *p, struct ranges *r,
                           const double **corrections)
{
    strata_error err = {0};
    const struct quantising q = {.scheme = &b->scheme,
                                 .registry = b->registry,
                                 .ranges = r,
                                 .corrections = corrections};
    ok(probe_open_quantised(p, b->handle, &q, &err), &err);
}

static double rounded(double x, double scale)
{
    return fmin(fmax(nearbyint((double)((float)x / (float)scale)), -128), 127) * scale;
}

/* conv1 by its definition, of rounded inputs and weights. */
Test(quantised, a_layer_is_what_int8_gives)
{
    struct bench b;
    struct ranges r = {0};
    struct probe p;
    struct int8_weight w;
    strata_error err = {0};
    open_bench(&b);
    collect_ranges(&b, &r);
    open_quantised(&b, &p, &r, NULL);
    const struct network_layer *l = layer(b.net, "conv1");
    ok(int8_weight_make(&w, l, scheme_computes(b.net, l), &quant_int8, NULL, &err), &err);
    float bias[6] = {0}, from[6 * 27];
    if (network_has_weight(l, 1))
        ok(network_weight_load(&l->weights[1], bias, &err), &err);
    ok(network_weight_load(&l->weights[0], from, &err), &err);
    const double scale = (double)quantised_scale(&quant_int8, ranges_find(&r, "x"));
    struct losses losses;
    ok(losses_open(&losses, &b.scheme, &err), &err);
    ok(losses_run(&losses, &b.floats, &p, &b.samples, 1, &err), &err);
    double signal = 0, noise = 0;
    for (int k = 0; k < 6; k++)
        for (int oy = 0; oy < 9; oy++)
            for (int ox = 0; ox < 7; ox++) {
                double y = (double)bias[k], q = y;
                for (int t = 0; t < 27; t++) {
                    const int c = t / 9, iy = oy + t / 3 % 3 - 1, ix = ox + t % 3 - 1;
                    if (iy < 0 || iy > 8 || ix < 0 || ix > 6)
                        continue;
                    const double in = (double)b.data[0][(c * 9 + iy) * 7 + ix];
                    const int64_t at = k * 27 + t;
                    y += in * (double)from[at];
                    q += rounded(in, scale) * (int8_t)w.values[at] * (double)w.scales[k];
                }
                signal += y * y;
                noise += (y - q) * (y - q);
            }
    const struct layer_loss *loss = &losses.layers[l - b.net->layers];
    cr_expect_float_eq(loss->out.signal, signal, signal * 1e-5);
    cr_expect_float_eq(loss->out.noise, noise, noise * 1e-2, "%g, not %g",
                       loss->out.noise, noise);
    losses_free(&losses);
    int8_weight_free(&w);
    probe_close(&p);
    ranges_free(&r);
    close_bench(&b);
}

Test(quantised, corrected_biases_leave_no_mean_error)
{
    struct bench b;
    struct ranges r = {0};
    struct probe p;
    struct losses before, after;
    const double **corrections;
    strata_error err = {0};
    open_bench(&b);
    collect_ranges(&b, &r);
    open_quantised(&b, &p, &r, NULL);
    ok(losses_open(&before, &b.scheme, &err), &err);
    ok(losses_run(&before, &b.floats, &p, &b.samples, SAMPLES, &err), &err);
    ok(losses_corrections(&corrections, &before, &err), &err);
    probe_close(&p);
    open_quantised(&b, &p, &r, corrections);
    ok(losses_open(&after, &b.scheme, &err), &err);
    ok(losses_run(&after, &b.floats, &p, &b.samples, SAMPLES, &err), &err);
    for (size_t i = 0; i < b.net->n_layers; i++) {
        const struct layer_loss *e = &after.layers[i], *was = &before.layers[i];
        for (int64_t k = 0; k < e->channels; k++)
            cr_expect(fabs(e->off[k]) / (double)e->count[k] < 1e-5,
                      "%s: channel %lld is off by %g", b.net->layers[i].name,
                      (long long)k, e->off[k] / (double)e->count[k]);
        cr_expect(e->channels == 0 || was->out.noise > 0, "nothing was rounded");
        cr_expect_float_eq(e->out.noise, was->mended.noise, was->out.noise * 1e-3, "%s",
                           b.net->layers[i].name);
    }
    losses_free(&before);
    losses_free(&after);
    free(corrections);
    probe_close(&p);
    ranges_free(&r);
    close_bench(&b);
}

Test(quantised, a_tensor_without_a_range_is_named)
{
    struct bench b;
    struct ranges r = {0}, less = {0};
    struct quantised made;
    strata_error err = {0};
    static const struct quantised_names names = {"w.safetensors", NULL};
    open_bench(&b);
    collect_ranges(&b, &r);
    for (size_t i = 0; i < r.n; i++)
        if (strcmp(r.list[i].tensor, "pool") != 0)
            ok(ranges_put(&less, r.list[i].tensor, r.list[i].low, r.list[i].high, 1,
                          &err),
               &err);
    const struct quantising q = {
        .scheme = &b.scheme, .registry = b.registry, .ranges = &less};
    cr_expect_eq(quantised_make(&made, &q, &names, &err), STRATA_ENOTFOUND);
    cr_expect(strstr(err.message, "'pool'") != NULL, "%s", err.message);
    cr_expect_null(made.text);
    ranges_free(&r);
    ranges_free(&less);
    close_bench(&b);
}

/* A range so narrow for one tensor that its reader loses everything: a budget keeps that
 * layer, and no other. */
Test(quantised, a_budget_keeps_the_layer_that_hurts)
{
    struct bench b;
    struct ranges r = {0};
    strata_error err = {0};
    int64_t labels[SAMPLES];
    struct answers answers, *alone;
    open_bench(&b);
    collect_ranges(&b, &r);
    const size_t hurt = (size_t)(layer(b.net, "up") - b.net->layers);
    ok(ranges_put(&r, "sum", 0, 1e-6, 1, &err), &err);
    for (int i = 0; i < SAMPLES; i++) { /* what floats answer is right */
        float prob[5];
        ok(load(&b, b.floats.context, (size_t)i, &err), &err);
        ok(strata_context_run(b.floats.context, &err), &err);
        ok(strata_copy_out(b.floats.context, 1, prob, &err), &err);
        labels[i] = 0;
        for (int k = 1; k < 5; k++)
            labels[i] = prob[k] > prob[labels[i]] ? k : labels[i];
    }
    bool *keep = calloc(b.net->n_layers, sizeof *keep);
    alone = calloc(b.net->n_layers, sizeof *alone);
    const struct quantising q = {
        .scheme = &b.scheme, .registry = b.registry, .ranges = &r};
    const struct experiment x = {&b.floats, b.handle, &q, &b.samples, labels};
    ok(experiment_alone(alone, &x, &err), &err);
    for (size_t i = 0; i < b.net->n_layers; i++)
        cr_expect(alone[i].out.noise <= alone[hurt].out.noise, "%s",
                  b.net->layers[i].name);
    ok(experiment_choose(keep, &answers, &x, alone, SAMPLES, &err), &err);
    cr_expect(!keep[hurt], "nothing is kept where all may be lost");
    ok(experiment_choose(keep, &answers, &x, alone, 0, &err), &err);
    cr_expect_eq(answers.right, SAMPLES);
    cr_expect_eq(answers.right_floats, SAMPLES);
    const bool needed = alone[hurt].right < SAMPLES;
    cr_expect(!needed || keep[hurt], "up is what hurts");
    free(keep);
    free(alone);
    ranges_free(&r);
    close_bench(&b);
}
