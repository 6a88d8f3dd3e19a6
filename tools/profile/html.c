/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile as one HTML file: no scripts, fonts or links, so that it can be mailed and
 * kept. This file has the frame and the figures at the top; each section has its own.
 */
#include <stdlib.h>
#include <string.h>

#include "io/stream.h"
#include "registry/math/mode.h"
#include "io/file.h"
#include "tools/predicted.h"
#include "tools/profile/profile.h"

static const char style[] =
    ":root{--ink:#0f172a;--soft:#64748b;--line:#e2e8f0;--paper:#fff;--page:#f1f5f9;"
    "--accent:#2563eb;--loud:#d6006c}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--ink);"
    "font:14px/1.45 system-ui,'DejaVu Sans',Arial,sans-serif}"
    "main{max-width:1240px;margin:0 auto;padding:24px}"
    "h1{font-size:24px;margin:0}h2{font-size:17px;margin:0 0 4px}"
    "p.sub{margin:2px 0 14px;color:var(--soft)}"
    "section{background:var(--paper);border:1px solid var(--line);border-radius:10px;"
    "padding:18px 20px;margin-top:18px}"
    ".cards{display:flex;flex-wrap:wrap;gap:12px;margin-top:16px}"
    ".card{background:var(--paper);border:1px solid var(--line);border-radius:10px;"
    "padding:12px 16px;flex:1 1 150px}"
    ".card b{display:block;font-size:22px;font-weight:650;white-space:nowrap}"
    ".card span{color:var(--soft);font-size:12px}"
    "table.grid{border-collapse:collapse;width:100%;font-size:13px}"
    ".grid th{text-align:left;color:var(--soft);font-weight:600;font-size:12px;"
    "border-bottom:1px solid var(--line);padding:3px 8px;white-space:nowrap}"
    ".grid td{padding:3px 8px;border-bottom:1px solid #f1f5f9;vertical-align:top}"
    ".grid td.n,.grid th.n{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}"
    ".grid tr:hover td{background:#f8fafc}"
    ".how{color:var(--soft);font-size:12px;white-space:nowrap}"
    ".track{position:relative;background:#f1f5f9;height:16px;border-radius:3px;"
    "min-width:200px}"
    ".track i{position:absolute;left:0;top:0;bottom:0;border-radius:3px}"
    ".track u{position:absolute;left:0;top:5px;bottom:5px;background:var(--ink);"
    "opacity:.75;border-radius:2px}"
    ".stack{display:flex;height:26px;border-radius:6px;overflow:hidden;margin:6px 0}"
    ".stack i{display:block;min-width:1px}"
    ".legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:12px;margin-bottom:14px}"
    ".legend i{display:inline-block;width:10px;height:10px;border-radius:2px;"
    "margin-right:5px}"
    ".loud{color:var(--loud);font-weight:600}"
    ".wide svg{zoom:.75}.good td{background:#f0fdf4}"
    ".won td{background:#ecfdf5;font-weight:600}.out td{color:var(--soft)}"
    "details{border-bottom:1px solid #f1f5f9;padding:3px 0}"
    "summary{cursor:pointer;padding:2px 0}summary .n{float:right;color:var(--soft)}"
    ".wide{overflow:auto;max-height:900px;border:1px solid var(--line);"
    "border-radius:8px}"
    "svg text{font-family:system-ui,'DejaVu Sans',Arial,sans-serif}"
    "@media print{body{background:#fff}section,.card{break-inside:avoid}}";

static void put_card(const char *value, const char *what, FILE *out)
{
    fprintf(out, "<div class=\"card\"><b>");
    html_text(value, out);
    fputs("</b><span>", out);
    html_text(what, out);
    fputs("</span></div>\n", out);
}

static void print_time(char text[32], double us)
{
    snprintf(text, 32, us < 1000 ? "%.1f µs" : "%.3f ms", us < 1000 ? us : us * 1e-3);
}

static void put_time(double us, const char *what, FILE *out)
{
    char text[32];
    print_time(text, us);
    put_card(text, what, out);
}

static void put_figures(const struct profile *p, FILE *out)
{
    const strata_engine *e = p->engine;
    double floor = 0, reformats = 0;
    char text[64], watched[32], what[192];
    for (size_t i = 0; i < p->n; i++) {
        floor += p->rows[i].step.floor_us;
        if (p->rows[i].step.kind == STRATA_STEP_REFORMAT)
            reformats += p->rows[i].median;
    }
    fputs("<div class=\"cards\">\n", out);
    put_time(p->whole_us,
             p->graph ? "a run on the device, as one graph" : "a run on the device", out);
    print_time(watched, p->watched_us);
    print_time(text, p->stepped_us);
    snprintf(what, sizeof what,
             "sum of %zu steps' medians; a watched run takes %s, an unwatched one %s",
             p->n, watched, text);
    put_time(p->sum_us, what, out);
    print_time(text, tool_predicted_us(e));
    char *doubt = tool_doubt_costs(e, p->whole_us);
    put_card(text, doubt ? doubt : "predicted by the plan's costs", out);
    free(doubt);
    const double share = p->sum_us > 0 ? floor / p->sum_us : 0;
    snprintf(text, sizeof text, "%.*f %%", share < 0.1, 100 * share);
    put_card(text, "of the sum is what the device's ceilings ask for", out);
    snprintf(text, sizeof text, "%.1f %%",
             p->sum_us > 0 ? 100 * reformats / p->sum_us : 0);
    snprintf(what, sizeof what, "of the sum goes into %zu reformat%s",
             e->planner->plan->n_reformats,
             e->planner->plan->n_reformats == 1 ? "" : "s");
    put_card(text, what, out);
    snprintf(text, sizeof text, "%.2f MiB", (double)e->execution->arena_bytes / 1048576);
    snprintf(what, sizeof what, "memory of a context; at least %.2f alive at once",
             (double)e->execution->arena_bound / 1048576);
    put_card(text, what, out);
    snprintf(text, sizeof text, "%.2f MiB", (double)e->weight_bytes / 1048576);
    put_card(text, "weights, shared by contexts", out);
    fputs("</div>\n", out);
}

static void put_shapes(const strata_engine *e, bool inputs, FILE *out)
{
    const char *gap = "";
    strata_binding b = {.struct_size = sizeof b};
    for (int i = 0; i < strata_engine_bindings(e); i++) {
        char dims[128];
        if (strata_engine_binding(e, i, &b, NULL) != STRATA_OK || b.is_input != inputs)
            continue;
        tool_dims(dims, sizeof dims, b.desc.dims, b.desc.rank);
        fputs(gap, out);
        html_text(b.name, out);
        fprintf(out, " %s %s", dims, b.format);
        gap = ", ";
    }
}

static void put_head(const struct profile *p, FILE *out)
{
    const strata_network *net = p->engine->network;
    const char *name = net->name ? net->name : net->path;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          out);
    html_text(name, out);
    fprintf(out, " - strata profile</title><style>%s</style></head>\n<body><main>\n<h1>",
            style);
    html_text(name, out);
    fputs("</h1><p class=\"sub\">", out);
    put_shapes(p->engine, true, out);
    fputs(" → ", out);
    put_shapes(p->engine, false, out);
    fputs(" · ", out);
    html_text(p->handle->properties.name, out);
    fprintf(out, " · medians of %zu runs</p>\n", p->runs);
}

static void put_pair(const char *name, const char *value, FILE *out)
{
    fputs("<tr><td>", out);
    html_text(name, out);
    fputs("</td><td>", out);
    html_text(value, out);
    fputs("</td></tr>\n", out);
}

static void put_environment(const struct profile *p, FILE *out)
{
    static const char *const sources[] = {[COSTS_ANALYTIC] = "the analytic model",
                                          [COSTS_MEASURE] = "measurements here",
                                          [COSTS_FILE] = "a recording"};
    static const char *const precisions[] = {[PRECISION_FP32] = "fp32",
                                             [PRECISION_FP16] = "fp16",
                                             [PRECISION_ANY] = "any",
                                             [PRECISION_BF16] = "bf16"};
    const struct device_properties *d = &p->handle->properties;
    const strata_engine *e = p->engine;
    char text[256];
    fputs("<section><h2>Where this was measured</h2><table class=\"grid\">\n", out);
    put_pair("network", e->network->path, out);
    put_pair("strata", strata_version(), out);
    snprintf(text, sizeof text, "%s, %d %s", d->build[0] ? d->build : d->name, d->threads,
             d->kind == STRATA_HOST ? "threads" : "multiprocessors");
    put_pair("device", text, out);
    snprintf(text, sizeof text, "%.0f GB/s; %.0f GFLOP/s in FP32, %.0f in FP16",
             d->bandwidth * 1e-9, d->flops[STRATA_FP32] * 1e-9,
             d->flops[STRATA_FP16] * 1e-9);
    put_pair("ceilings, as the planner's model has them", text, out);
    put_pair("precision", precisions[e->network->build.precision], out);
    put_pair("math", math_name(e->execution->math), out);
    snprintf(text, sizeof text, "from %s; predicted %.1f µs; %s",
             sources[e->planner->costs.kind], tool_predicted_us(e),
             e->planner->plan->proved ? "proved optimal" : "not proved optimal");
    put_pair("plan", text, out);
    fputs("</table></section>\n", out);
}

static int put_report(const struct profile *p, FILE *out, strata_error *err)
{
    const strata_engine *e = p->engine;
    struct explain *x = NULL;
    int status = explain_plan(&x, &e->planner->model->problem, &e->planner->plan_options,
                              e->planner->plan, err);
    if (status != STRATA_OK)
        return status;
    put_head(p, out);
    put_figures(p, out);
    html_layers(p, out);
    html_roofline(p, out);
    html_memory(p, out);
    status = html_graph(p, x, out, err);
    html_reformats(p, x, out);
    html_fusions(p, out);
    html_impls(p, out);
    put_environment(p, out);
    fputs("</main></body></html>\n", out);
    explain_free(x);
    return status;
}

int html_write(const struct profile *p, const char *path, strata_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = text_stream(&text, &size);
    int status = f ? put_report(p, f, err) : error_no_memory(err, 0, "a report");
    if (f && (!text_finish(f, &text) || tool_output_lost()) && status == STRATA_OK)
        status = error_no_memory(err, 0, "a report");
    if (status == STRATA_OK)
        status = file_write(path, text, size, err);
    free(text);
    return status;
}
