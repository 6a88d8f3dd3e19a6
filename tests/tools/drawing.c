/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawings of plans by `strata explain`: SVG is well-formed XML that needs nothing else,
 * DOT is what Graphviz's grammar allows, and both show every node and reformat.
 */
#include "core/alloc.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(drawing, .timeout = 600);

enum { BLOCKS = 40 };

/* A residual network of BLOCKS blocks with names that need escaping. */
static void write_network(FILE *f)
{
    fputs("[network]\nformat = 1\nname = a <b> & c\noutputs = sum39\n"
          "[input x]\nshape = 1 x 16 x 8 x 8\n[weights w]\nrandom = 1\n",
          f);
    for (int i = 0; i < BLOCKS; i++) {
        const char *in = i ? "sum" : "x";
        char name[32];
        snprintf(name, sizeof name, i ? "%s%d" : "%s", in, i - 1);
        fprintf(f,
                "[layer conv%d]\ntype = Convolution\ninputs = %s\nfilters = 16\n"
                "kernel = 3x3\npad = 1\nweights = w:conv%d\n"
                "[layer sum%d]\ntype = ElementWise\nop = sum\n"
                "inputs = conv%d, %s\n",
                i, name, i, i, i, name);
    }
}

/* Standard output of `strata explain NET OPTIONS`. */
static char *explain(const char *options)
{
    char path[] = "/tmp/strata-drawing-XXXXXX", command[1024];
    const char *builddir = getenv("builddir");
    char *text = NULL;
    size_t size, n;
    char chunk[4096];
    int fd = mkstemp(path);
    FILE *net = fd >= 0 ? fdopen(fd, "w") : NULL, *all = open_memstream(&text, &size);
    cr_assert(net && all);
    write_network(net);
    fclose(net);
    snprintf(command, sizeof command,
             "%s/strata explain %s --set build.precision=fp16 --set build.fusion=no "
             "--set build.formats=fp16:nhwc8 %s",
             builddir ? builddir : ".", path, options);
    FILE *out = popen(command, "r");
    cr_assert_neq(out, NULL);
    while ((n = fread(chunk, 1, sizeof chunk, out)) > 0)
        fwrite(chunk, 1, n, all);
    cr_assert_eq(pclose(out), 0, "%s", command);
    fclose(all);
    unlink(path);
    return text;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* ---- XML --------------------------------------------------------------------------- */

/* Past an entity, or NULL if it is none of the five. */
static const char *skip_entity(const char *p)
{
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"};
    for (size_t i = 0; i < ARRAY_LENGTH(entities); i++)
        if (strncmp(p, entities[i], strlen(entities[i])) == 0)
            return p + strlen(entities[i]);
    return NULL;
}

/* Past NAME="VALUE" pairs, up to '>' or '/'; NULL if malformed. */
static const char *skip_attributes(const char *p)
{
    while (*p == ' ') {
        p += strspn(p, " ");
        size_t n = strcspn(p, "=<>\" ");
        if (n == 0 || strncmp(p + n, "=\"", 2) != 0)
            return NULL;
        for (p += n + 2; *p != '"';) {
            if (*p == '\0' || *p == '<')
                return NULL;
            p = *p == '&' ? skip_entity(p) : p + 1;
            if (!p)
                return NULL;
        }
        p++;
    }
    return *p == '>' || *p == '/' ? p : NULL;
}

/* The place where text stops being one well-formed element; NULL: it is one. */
static const char *malformed(const char *text)
{
    char open[16][16];
    int depth = 0;
    for (const char *p = text; *p;) {
        if (*p == '&') {
            const char *next = skip_entity(p);
            if (!next)
                return p;
            p = next;
        } else if (*p != '<') {
            if ((unsigned char)*p < 0x20 && *p != '\n')
                return p;
            if (depth == 0 && !isspace((unsigned char)*p))
                return p;
            p++;
        } else if (p[1] == '/') {
            size_t n = strcspn(p + 2, ">");
            if (depth == 0 || strncmp(open[--depth], p + 2, n) != 0 || open[depth][n])
                return p;
            p += n + 3;
        } else {
            size_t n = strcspn(p + 1, " />");
            if (depth == 16 || n == 0 || n > 15 || (depth == 0 && p != text))
                return p;
            memcpy(open[depth], p + 1, n);
            open[depth++][n] = '\0';
            const char *end = skip_attributes(p + 1 + n);
            if (!end)
                return p;
            depth -= *end == '/';
            p = end + 1 + (*end == '/');
        }
    }
    return depth ? text : NULL;
}

Test(drawing, the_checker_knows_bad_xml)
{
    static const char *const bad[] = {"<a>",         "<a></b>",  "<a>&b</a>",
                                      "<a b=c/>",    "<a/><b/>", "<a b=\"<\"/>",
                                      "<a>\x01</a>", "x<a/>"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        cr_expect_neq(malformed(bad[i]), NULL, "%s", bad[i]);
    cr_expect_eq(malformed("<a b=\"&lt;\"><c/>x &amp; y</a>\n"), NULL);
}

Test(drawing, svg_is_well_formed_and_shows_every_node)
{
    char *svg = explain("--svg -");
    char *end = strstr(svg, "</svg>\n");
    cr_assert_neq(end, NULL);
    end[strlen("</svg>\n")] = '\0'; /* the table follows */
    const char *bad = malformed(svg);
    cr_expect_eq(bad, NULL, "at: %.60s", bad);
    cr_expect_neq(strstr(svg, "a &lt;b&gt; &amp; c"), NULL);
    cr_expect_eq(count(svg, "<title>conv"), BLOCKS);
    cr_expect_eq(count(svg, "<title>sum"), BLOCKS);
    cr_expect_eq(count(svg, "<title>REFORMAT"), 2, "in and out");
    cr_expect_eq(count(svg, "FIXED-IO"), 4, "each in its title and on its box");
    cr_expect_eq(count(svg, "http"), 1, "the name space alone");
    cr_expect_eq(count(svg, "href") + count(svg, "url(") + count(svg, "<script"), 0);
    cr_expect_eq(count(svg, "nan") + count(svg, "inf"), 0);
    free(svg);
}

Test(drawing, boxes_do_not_overlap)
{
    struct box {
        double x, y, width;
    } boxes[3 * BLOCKS];
    size_t n = 0;
    char *svg = explain("--svg -");
    for (const char *p = svg; (p = strstr(p, "</title><rect ")) && n < 3 * BLOCKS; p++)
        n += sscanf(p, "</title><rect x=\"%lf\" y=\"%lf\" width=\"%lf\"", &boxes[n].x,
                    &boxes[n].y, &boxes[n].width) == 3;
    cr_expect_eq(n, 2 * BLOCKS + 4, "%zu", n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct box *a = &boxes[i], *b = &boxes[k];
            bool beside = a->x + a->width < b->x || b->x + b->width < a->x;
            cr_expect(beside || a->y + 42 < b->y || b->y + 42 < a->y, "%zu, %zu", i, k);
        }
    free(svg);
}

/* ---- DOT --------------------------------------------------------------------------- */

/* Quotes close on each line, and outside of them the brackets match. */
static bool is_statement(const char *line, size_t n)
{
    int brackets = 0;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (quoted && line[i] == '\\')
            i++;
        else if (line[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            brackets += (line[i] == '[') - (line[i] == ']');
    }
    return !quoted && brackets == 0 && (line[n - 1] == ';' || line[n - 1] == '{');
}

Test(drawing, dot_is_well_formed_and_shows_every_edge)
{
    char *dot = explain("--dot -");
    cr_expect_eq(strncmp(dot, "digraph \"a <b> & c\" {\n", 22), 0, "%.40s", dot);
    const char *line = dot;
    for (size_t n; (n = strcspn(line, "\n")) && *line != '}'; line += n + 1)
        cr_expect(is_statement(line, n), "%.*s", (int)n, line);
    cr_expect_str_eq(line, "}\n");
    cr_expect_eq(count(dot, "label=\"REFORMAT"), 2);
    /* conv: 1, sum: 2, two reformats, one output */
    cr_expect_eq(count(dot, " -> v"), 3 * BLOCKS + 3);
    free(dot);
}
