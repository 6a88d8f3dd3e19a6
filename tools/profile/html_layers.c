/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time goes: by type, by step, and against the device's ceilings.
 */
#include <math.h>
#include <string.h>

#include "tools/profile/profile.h"

/* Of layer types, in the order in which they appear; reformats have the loud colour. */
static const char *const palette[] = {"#2563eb", "#0f9d58", "#d97706", "#7c3aed",
                                      "#0891b2", "#65a30d", "#9f1239", "#475569"};
static const char loud[] = "#d6006c";

enum { MAX_TYPES = 32, NAME = 40 };

struct types {
    char names[MAX_TYPES][NAME];
    double us[MAX_TYPES];
    size_t n;
};

/* "Convolution" of "core::Convolution@1" */
static void type_of(char name[NAME], const strata_step *s)
{
    const char *from = s->layer ? strstr(s->layer, "::") : NULL;
    if (from)
        snprintf(name, NAME, "%.*s", (int)strcspn(from + 2, "@"), from + 2);
    else
        snprintf(name, NAME, "%s", "reformat");
}

static size_t find_type(struct types *t, const strata_step *s)
{
    char name[NAME];
    size_t i = 0;
    type_of(name, s);
    while (i < t->n && strcmp(t->names[i], name) != 0)
        i++;
    if (i == t->n && t->n < MAX_TYPES)
        memcpy(t->names[t->n++], name, sizeof name);
    return i < MAX_TYPES ? i : MAX_TYPES - 1;
}

static const char *colour(struct types *t, const strata_step *s)
{
    return s->kind == STRATA_STEP_REFORMAT
               ? loud
               : palette[find_type(t, s) % ARRAY_LENGTH(palette)];
}

static void add_types(struct types *t, const struct profile *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i].step.kind != STRATA_STEP_RELABEL)
            t->us[find_type(t, &p->rows[i].step)] += p->rows[i].median;
}

static const char *type_colour(const struct types *t, size_t i)
{
    return strcmp(t->names[i], "reformat") == 0 ? loud
                                                : palette[i % ARRAY_LENGTH(palette)];
}

static void put_types(const struct types *t, double sum, FILE *out)
{
    fputs("<div class=\"stack\">", out);
    for (size_t i = 0; i < t->n && sum > 0; i++)
        fprintf(out, "<i style=\"width:%.2f%%;background:%s\"></i>", 100 * t->us[i] / sum,
                type_colour(t, i));
    fputs("</div>\n<div class=\"legend\">", out);
    for (size_t i = 0; i < t->n && sum > 0; i++) {
        fprintf(out, "<span><i style=\"background:%s\"></i>", type_colour(t, i));
        html_text(t->names[i], out);
        fprintf(out, " %.1f %%</span>\n", 100 * t->us[i] / sum);
    }
    fputs("</div>\n", out);
}

static void put_bar(const struct profile_row *r, double slowest, const char *fill,
                    FILE *out)
{
    const double time = 100 * r->median / slowest;
    const double floor = 100 * r->step.floor_us / slowest;
    fprintf(out,
            "<td><div class=\"track\" title=\"%.2f µs, floor %.2f µs, four fifths of "
            "runs %.2f to %.2f\"><i style=\"width:%.2f%%;background:%s\"></i>"
            "<u style=\"width:%.2f%%\"></u></div></td>",
            r->median, r->step.floor_us, r->low, r->high, time, fill,
            floor < 100 ? floor : 100);
}

static void put_row(const struct profile *p, struct types *t, const struct profile_row *r,
                    double slowest, FILE *out)
{
    const strata_step *s = &r->step;
    const double us = r->median > 0 ? r->median : 1e-9;
    char type[NAME];
    type_of(type, s);
    fprintf(out, "<tr><td><span%s>",
            s->kind == STRATA_STEP_REFORMAT ? " class=\"loud\"" : "");
    html_text(s->name, out);
    fputs("</span><br><span class=\"how\">", out);
    html_text(type, out);
    if (s->impl) {
        fputs(" · ", out);
        html_text(s->impl, out);
        fputs(" of ", out);
        html_text(profile_module(r), out);
    }
    if (strcmp(s->from, s->to) == 0)
        fprintf(out, " · %s</span></td>", s->to);
    else
        fprintf(out, " · %s → %s</span></td>", s->from, s->to);
    put_bar(r, slowest, colour(t, s), out);
    fprintf(out,
            "<td class=\"n\">%.2f</td><td class=\"n\">%.1f %%</td><td class=\"n\">%.*f "
            "%%</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td>%s</td></tr>\n",
            r->median, p->sum_us > 0 ? 100 * r->median / p->sum_us : 0,
            profile_roofline(r) < 0.1, 100 * profile_roofline(r), s->bytes / us * 1e-3,
            s->operations / us * 1e-3, s->memory_bound ? "memory" : "arithmetic");
}

void html_layers(const struct profile *p, FILE *out)
{
    struct types t = {.n = 0};
    double slowest = 1e-9;
    add_types(&t, p);
    for (size_t i = 0; i < p->n; i++)
        slowest = p->rows[i].median > slowest ? p->rows[i].median : slowest;
    fputs("<section><h2>Where the time goes</h2><p class=\"sub\">Steps in the order of a "
          "run. The thin dark line in a bar is the floor: what the device's memory or "
          "arithmetic ask for at least.</p>\n",
          out);
    put_types(&t, p->sum_us, out);
    fputs("<table class=\"grid\"><tr><th>step</th><th>time</th><th class=\"n\">µs</th>"
          "<th class=\"n\">share</th><th class=\"n\">of floor</th><th class=\"n\">GB/s"
          "</th><th class=\"n\">GFLOP/s</th><th>bound by</th></tr>\n",
          out);
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i].step.kind != STRATA_STEP_RELABEL)
            put_row(p, &t, &p->rows[i], slowest, out);
    fputs("</table></section>\n", out);
}

/* ---- roofline -----------------------------------------------------------------------
 */

enum { WIDTH = 1180, HEIGHT = 380, LEFT = 64, RIGHT = 20, TOP = 16, BOTTOM = 44 };

/* Decades shown: x in operations a byte, y in GFLOP/s. */
struct axes {
    double x0, x1, y0, y1; /* log10 */
};

static double place_x(const struct axes *a, double value)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(value) - a->x0) / (a->x1 - a->x0);
}

static double place_y(const struct axes *a, double value)
{
    return HEIGHT - BOTTOM -
           (HEIGHT - TOP - BOTTOM) * (log10(value) - a->y0) / (a->y1 - a->y0);
}

static bool is_point(const struct profile_row *r)
{
    return r->step.kind == STRATA_STEP_RUN && r->step.operations > 0 &&
           r->step.bytes > 0 && r->median > 0;
}

static struct axes find_axes(const struct profile *p)
{
    const struct device_properties *d = &p->handle->properties;
    const double peak = d->flops[STRATA_FP16] > d->flops[STRATA_FP32]
                            ? d->flops[STRATA_FP16]
                            : d->flops[STRATA_FP32];
    struct axes a = {-1, 2, 0, log10(peak * 1e-9)};
    for (size_t i = 0; i < p->n; i++) {
        const struct profile_row *r = &p->rows[i];
        if (!is_point(r))
            continue;
        const double x = log10(r->step.operations / r->step.bytes);
        const double y = log10(r->step.operations / r->median * 1e-3);
        a.x0 = fmin(a.x0, x);
        a.x1 = fmax(a.x1, x);
        a.y0 = fmin(a.y0, y);
        a.y1 = fmax(a.y1, y);
    }
    return (struct axes){floor(a.x0), ceil(a.x1 + 0.3), floor(a.y0), ceil(a.y1 + 0.1)};
}

static void put_axes(const struct axes *a, FILE *out)
{
    for (double x = a->x0; x <= a->x1; x++)
        fprintf(out,
                "<path d=\"M%.1f %dV%d\" stroke=\"#e2e8f0\"/><text x=\"%.1f\" y=\"%d\" "
                "font-size=\"11\" fill=\"#64748b\" text-anchor=\"middle\">%g</text>\n",
                place_x(a, pow(10, x)), TOP, HEIGHT - BOTTOM, place_x(a, pow(10, x)),
                HEIGHT - BOTTOM + 16, pow(10, x));
    for (double y = a->y0; y <= a->y1; y++)
        fprintf(out,
                "<path d=\"M%d %.1fH%d\" stroke=\"#e2e8f0\"/><text x=\"%d\" y=\"%.1f\" "
                "font-size=\"11\" fill=\"#64748b\" text-anchor=\"end\">%g</text>\n",
                LEFT, place_y(a, pow(10, y)), WIDTH - RIGHT, LEFT - 6,
                place_y(a, pow(10, y)) + 4, pow(10, y));
    fprintf(out,
            "<text x=\"%d\" y=\"%d\" font-size=\"12\" fill=\"#64748b\" "
            "text-anchor=\"middle\">operations a byte</text><text x=\"14\" y=\"%d\" "
            "font-size=\"12\" fill=\"#64748b\" text-anchor=\"middle\" "
            "transform=\"rotate(-90 14 %d)\">GFLOP/s</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, HEIGHT / 2, HEIGHT / 2);
}

/* Up the memory's slope to the peak, and along it. */
static void put_ceiling(const struct axes *a, double bandwidth, double peak,
                        const char *name, FILE *out)
{
    const bool large = peak > 1e13;
    const double ridge = peak / bandwidth, left = pow(10, a->x0);
    const double begin = fmax(left * bandwidth * 1e-9, pow(10, a->y0));
    fprintf(out,
            "<path d=\"M%.1f %.1fL%.1f %.1fH%d\" fill=\"none\" stroke=\"#0f172a\" "
            "stroke-width=\"1.5\"/><text x=\"%d\" y=\"%.1f\" font-size=\"11\" "
            "text-anchor=\"end\">%s, %.4g %sFLOP/s</text>\n",
            place_x(a, begin / (bandwidth * 1e-9)), place_y(a, begin), place_x(a, ridge),
            place_y(a, peak * 1e-9), WIDTH - RIGHT, WIDTH - RIGHT - 4,
            place_y(a, peak * 1e-9) - 5, name, large ? peak * 1e-12 : peak * 1e-9,
            large ? "T" : "G");
}

void html_roofline(const struct profile *p, FILE *out)
{
    const struct device_properties *d = &p->handle->properties;
    const struct axes a = find_axes(p);
    struct types t = {.n = 0};
    add_types(&t, p);
    fprintf(out,
            "<section><h2>Against the device's ceilings</h2><p class=\"sub\">A circle is "
            "a layer, its area its share of the time. The slope is %.0f GB/s; what lies "
            "above it had its data in a cache.</p>\n<svg viewBox=\"0 0 %d %d\" "
            "width=\"100%%\">\n",
            d->bandwidth * 1e-9, WIDTH, HEIGHT);
    put_axes(&a, out);
    if (d->flops[STRATA_FP16] != d->flops[STRATA_FP32])
        put_ceiling(&a, d->bandwidth, d->flops[STRATA_FP16], "FP16", out);
    put_ceiling(&a, d->bandwidth, d->flops[STRATA_FP32], "FP32", out);
    for (size_t i = 0; i < p->n; i++) {
        const struct profile_row *r = &p->rows[i];
        if (!is_point(r))
            continue;
        fprintf(out,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" "
                "fill-opacity=\".6\" stroke=\"%s\"><title>",
                place_x(&a, r->step.operations / r->step.bytes),
                place_y(&a, r->step.operations / r->median * 1e-3),
                3 + 40 * sqrt(r->median / p->sum_us), colour(&t, &r->step),
                colour(&t, &r->step));
        html_text(r->step.name, out);
        fprintf(out, "\n%.2f µs, %.1f GFLOP/s, %.1f GB/s</title></circle>\n", r->median,
                r->step.operations / r->median * 1e-3, r->step.bytes / r->median * 1e-3);
    }
    fputs("</svg></section>\n", out);
}
