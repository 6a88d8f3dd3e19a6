/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows whose number only values tell: as many as there may be, those that count first,
 * through what detectors do with them, and −1 behind the last where they leave.
 */
#include "tests/network/import/free_model.h"
#include "tests/network/import/planned.h"

#define X "input x f 6\ninit z f - 0\nnode Greater x,z -> m\n"
/* The elements above 0, y, and how many they are, n. */
#define KEPT                                                                             \
    X "node NonZero m -> i\nnode Transpose i -> t perm=[1,0]\n"                          \
      "node GatherND x,t -> y\nnode Shape y -> n\n"

/* r: which of y stay, as boxes that overlap no other. */
#define BOXES                                                                            \
    "init a i 1 1\nnode Unsqueeze y,a -> c\ninit o f - 0.6\nnode Add c,o -> d\n"         \
    "init zero f - 0\nnode Mul c,zero -> e\nnode Add e,o -> h\n"                         \
    "node Concat e,c,h,d -> boxes axis=1\ninit b i 1 0\n"                                \
    "node Unsqueeze boxes,b -> b3\ninit b2 i 2 0 1\nnode Unsqueeze y,b2 -> s3\n"         \
    "init most i 1 9223372036854775807\ninit iou f 1 0.5\n"                              \
    "node NonMaxSuppression b3,s3,most,iou -> k\ninit last i 1 2\n"                      \
    "node Gather k,last -> j axis=1\nnode Squeeze j,a -> r\n"

/* A Loop with a round for each of y, whose element is v0, and v in a list; each appends
 * what it makes of r to w. */
#define NUMBER "input i i -\ninput c b -\n"
#define ELEMENT "node Gather y,i -> v0\nnode Unsqueeze v0,a -> v\n"
#define APPEND                                                                           \
    "node Concat s,r -> s1 axis=0\nnode Identity c -> c1\noutput c1\noutput s1\n}\n"
#define COUNT KEPT "init a i 1 0\nnode Squeeze n -> trips\ninit go b - 1\n"
#define ROUNDS                                                                           \
    COUNT "init s0 f 0\nnode Loop trips,go,s0 -> w body={\n" NUMBER                      \
          "input s f 0\n" ELEMENT

#define SQUARES ROUNDS "init h f 1 0.5\nnode Max v,h -> m\nnode Mul m,v0 -> r\n" APPEND
#define PAIRS                                                                            \
    COUNT "node Loop trips,go -> w body={\n" NUMBER ELEMENT                              \
          "node Cast i -> f to=1\ninit k f 2 10 20\nnode Mul v0,k -> u\n"                \
          "node Add u,f -> o\nnode Identity c -> c1\noutput c1\noutput o\n}\n"
/* An image of v rows, of the first 4 of which 4 are made. */
#define PASTED                                                                           \
    COUNT "init s0 f 0x1x4x2\nnode Loop trips,go,s0 -> w body={\n" NUMBER                \
          "input s f 0x1x4x2\n" ELEMENT                                                  \
          "init image f 1x1x2x2 0 1 2 3\nnode Mul image,v -> im\n"                       \
          "node Cast v -> h to=7\ninit one i 2 1 1\ninit two i 1 2\n"                    \
          "node Concat one,h,two -> size axis=0\n"                                       \
          "node Resize im,_,_,size -> big mode='linear'\n"                               \
          "init four i 1 4\nnode Slice big,a,four,two -> part\n"                         \
          "node Shape part -> now\nnode Gather now,two -> own\n"                         \
          "node Sub four,own -> left\nnode Concat one,left,two -> zs axis=0\n"           \
          "node ConstantOfShape zs -> z\nnode Concat z,part -> r axis=2\n" APPEND        \
          "init e i 1 1\nnode Slice w,a,e -> first\n"
/* The size and the square of each of v, negative. */
#define SIZES                                                                            \
    COUNT "node Loop trips,go -> w body={\n" NUMBER ELEMENT                              \
          "node Neg v0 -> u\nnode ReduceL1 u -> l keepdims=0\n"                          \
          "node ReduceSumSquare u -> q keepdims=0\nnode Unsqueeze l,a -> l1\n"           \
          "node Unsqueeze q,a -> q1\nnode Concat l1,q1 -> o axis=0\n"                    \
          "node Identity c -> c1\noutput c1\noutput o\n}\n"
/* An image of as many rows as the round's number says, before zeros. */
#define GROWN                                                                            \
    COUNT "init s0 f 0x1x4x2\nnode Loop trips,go,s0 -> w body={\n" NUMBER                \
          "input s f 0x1x4x2\n" ELEMENT                                                  \
          "init image f 1x1x2x2 0 1 2 3\nnode Mul image,v -> im\n"                       \
          "init three i 1 3\nnode Unsqueeze i,a -> i1\nnode Min i1,three -> i3\n"        \
          "init o i 1 1\nnode Add i3,o -> h\ninit one i 2 1 1\ninit two i 1 2\n"         \
          "node Concat one,h,two -> size axis=0\n"                                       \
          "node Resize im,_,_,size -> big mode='linear'\n"                               \
          "init four i 1 4\nnode Sub four,h -> left\n"                                   \
          "node Concat one,left,two -> zs axis=0\nnode ConstantOfShape zs -> z\n"        \
          "node Concat big,z -> r axis=2\n" APPEND                                       \
          "init d i 1 2\nnode ReduceSum w,d -> sums keepdims=0\n"
/* Rows, h: v from 1 to 4; 8, which are 9 less the number of true. */
#define FOUR_ROWS                                                                        \
    "init one f 1 1\ninit four f 1 4\nnode Min v,four -> u\nnode Max u,one -> t\n"       \
    "node Cast t -> h to=7\n"
#define EIGHT_ROWS                                                                       \
    "init five f 1 5\nnode Max v,five -> u\nnode Min u,five -> t\n"                      \
    "node Cast t -> true to=9\nnode Cast true -> less to=7\ninit nine i 1 9\n"           \
    "node Sub nine,less -> h\n"
/* Where the largest of an image of h rows is, and its value. */
#define PEAKS(size)                                                                      \
    COUNT "init s0 f 0x2\nnode Loop trips,go,s0 -> w body={\n" NUMBER                    \
          "input s f 0x2\n" ELEMENT size "init image f 1x1x2x2 0 1 3 2\n"                \
          "node Mul image,v -> im\ninit o i 2 1 1\ninit three i 1 3\n"                   \
          "node Concat o,h,three -> size axis=0\n"                                       \
          "node Resize im,_,_,size -> big mode='linear'\nnode Squeeze big,a -> map\n"    \
          "node Shape map -> ms\ninit two i - 2\nnode Gather ms,two -> wide\n"           \
          "init fs i 2 1 -1\nnode Reshape map,fs -> flat\n"                              \
          "node ArgMax flat -> p axis=1 keepdims=0\nnode Mod p,wide -> x0\n"             \
          "node Sub p,x0 -> p0\nnode Div p0,wide -> y0\n"                                \
          "node Gather map,y0 -> row axis=1\nnode Gather row,x0 -> e axis=2\n"           \
          "init es i 1 -1\nnode Reshape e,es -> ev\nnode Cast p -> pf to=1\n"            \
          "node Concat pf,ev -> pe axis=0\nnode Unsqueeze pe,a -> r\n" APPEND
#define UNTIL                                                                            \
    COUNT "node Loop trips,go -> w body={\n" NUMBER ELEMENT                              \
          "init four f - 4\nnode Less v0,four -> c1\noutput c1\noutput v\n}\n"

static const float given[][6] = {
    {3, -1, 2, 0, 5, -4}, {-1, -2, -3, -4, -5, -6}, {1, 6, 2, 5, 3, 4}};

static const struct counted_case {
    const char *name, *text;
    float wanted[3][12];
    int64_t n;
    int opset; /* 0: 21 */
} cases[] = {
    {"places of a matrix",
     "input x f 2x3\ninit z f - 0\nnode Greater x,z -> m\nnode NonZero m -> i\n"
     "node Cast i -> y to=1\noutput y\n",
     {{0, 0, 1, -1, -1, -1, 0, 2, 1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}},
     12},
    {"boxes of which none are wanted",
     KEPT BOXES "init no i 1 0\nnode NonMaxSuppression b3,s3,no,iou -> k0\n"
                "node NonMaxSuppression b3,s3 -> k1\nnode Concat k0,k,k1 -> all axis=0\n"
                "node Shape all -> sh\nnode Shape k0 -> s0\nnode Shape k1 -> s1\n"
                "node Concat sh,s0,s1 -> f axis=0\nnode Cast f -> w to=1\noutput w\n",
     {{3, 3, 0, 3, 0, 3}, {0, 3, 0, 3, 0, 3}, {6, 3, 0, 3, 0, 3}},
     6},
    {"boxes of which as many are wanted as a run says, to a most",
     KEPT BOXES "init at i 1 3\nnode Gather x,at -> f\nnode Cast f -> g to=7\n"
                "init two i 1 2\nnode Add g,a -> g1\nnode Min g1,two -> n2\nnode NonMaxSuppression b3,s3,n2,iou -> k2\n"
                "node Gather k2,last -> k3 axis=1\nnode Cast k3 -> y2 to=1\noutput y2\n",
     {{2, -1}, {-1, -1}, {1, 3}},
     2},
    {"places of floats, by rows",
     "input x f 6\nnode Relu x -> r\nnode NonZero r -> i\n"
     "node Transpose i -> t perm=[1,0]\nnode Cast t -> y to=1\noutput y\n",
     {{0, 2, 4, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {0, 1, 2, 3, 4, 5}},
     6},
    {"elements",
     KEPT "output y\n",
     {{3, 2, 5, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {1, 6, 2, 5, 3, 4}},
     6},
    {"compress",
     X "node Compress x,m -> y axis=0\noutput y\n",
     {{3, 2, 5, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {1, 6, 2, 5, 3, 4}},
     6},
    {"how many", KEPT "node Cast n -> f to=1\noutput f\n", {{3}, {0}, {6}}, 1},
    {"elements of elements",
     KEPT "init a f - 2\nnode Greater y,a -> g\nnode NonZero g -> j\n"
          "node Squeeze j -> k\nnode Gather y,k -> w\noutput w\n",
     {{3, 5, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {6, 5, 3, 4, -1, -1}},
     6},
    {"the largest, as many as there are, of 4 at most",
     KEPT "init k i 1 4\nnode Concat n,k -> nk axis=0\n"
          "node ReduceMin nk -> least keepdims=1\nnode TopK y,least -> w,j\noutput w\n",
     {{5, 3, 2, -1}, {-1, -1, -1, -1}, {6, 5, 4, 3}},
     4},
    {"the first ones",
     KEPT "init b i 1 0\ninit e i 1 2\nnode Slice y,b,e -> w\noutput w\n",
     {{3, 2}, {-1, -1}, {1, 6}},
     2},
    {"all but the first and the last",
     KEPT "init b i 1 1\ninit e i 1 -1\nnode Slice y,b,e -> w\noutput w\n",
     {{2, -1, -1, -1}, {-1, -1, -1, -1}, {6, 2, 5, 3}},
     4},
    {"sums and the largest",
     KEPT "node ReduceSum y -> s keepdims=1\nnode ReduceMax y -> l keepdims=1\n"
          "node ReduceMin y -> q keepdims=1\ninit c f - 9\nnode Min l,c -> l9\n"
          "init d f - -9\nnode Max l9,d -> ld\nnode Min q,c -> qc\n"
          "node Concat s,ld,qc -> w axis=0\noutput w\n",
     {{10, 5, 2}, {0, -9, 9}, {21, 6, 1}},
     3},
    {"lists that are joined",
     KEPT "init a f 2 7 8\nnode Neg y -> q\nnode Concat y,a,q -> w axis=0\n"
          "init b i 1 0\ninit e i 1 9\nnode Slice w,b,e -> u\noutput u\n",
     {{3, 2, 5, 7, 8, -3, -2, -5, -1},
      {7, 8, -1, -1, -1, -1, -1, -1, -1},
      {1, 6, 2, 5, 3, 4, 7, 8, -1}},
     9},
    {"labels of them, as long",
     KEPT "node ConstantOfShape n -> c\ninit l f - 4\nnode Add c,l -> w\noutput w\n",
     {{4, 4, 4, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {4, 4, 4, 4, 4, 4}},
     6},
    {"rows expanded, by a size that is chosen",
     KEPT "init o i 1 2\nnode Concat n,o -> s axis=0\ninit u i 1 -1\n"
          "node Equal s,u -> q\ninit ones i 2 1 1\nnode Where q,ones,s -> p\n"
          "init a i 1 1\nnode Unsqueeze y,a -> c\nnode Expand c,p -> w\noutput w\n",
     {{3, 3, 2, 2, 5, 5, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {1, 1, 6, 6, 2, 2, 5, 5, 3, 3, 4, 4}},
     12},
    {"rows of a number before the first, behind the last",
     KEPT "init p i 2 1 2\ninit z7 f - 7\nnode Pad y,p,z7 -> w\noutput w\n",
     {{7, 3, 2, 5, 7, 7, -1, -1, -1},
      {7, 7, 7, -1, -1, -1, -1, -1, -1},
      {7, 1, 6, 2, 5, 3, 4, 7, 7}},
     9},
    {"a round for each",
     SQUARES "output w\n",
     {{9, 4, 25, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {1, 36, 4, 25, 9, 16}},
     6},
    {"a round for each, that leaves two values",
     PAIRS "output w\n",
     {{30, 60, 21, 41, 52, 102, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {10, 20, 61, 121, 22, 42, 53, 103, 34, 64, 45, 85}},
     12},
    {"a round for each, of whose number its size and square are made",
     SIZES "output w\n",
     {{3, 9, 2, 4, 5, 25, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {1, 1, 6, 36, 2, 4, 5, 25, 3, 9, 4, 16}},
     12},
    {"a round for each, with dims that an old Softmax takes as one",
     KEPT
     "node Squeeze n -> trips\ninit go b - 1\nnode Loop trips,go -> w body={\n" NUMBER
     "node Gather y,i -> v0\ninit k f 2x2 0 0 0 0\nnode Add k,v0 -> m\n"
     "node Softmax m -> q axis=0\nnode ReduceMax q -> o axes=[1] keepdims=0\n"
     "node Identity c -> c1\noutput c1\noutput o\n}\noutput w\n",
     {{0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F,
       0.25F}},
     12,
     .opset = 12},
    {"an image resized to a size of the round's number, before zeros",
     GROWN "output sums\n",
     {{3, 6, 4, 8, 15, 30, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {1, 2, 12, 24, 6, 12, 20, 40, 12, 24, 16, 32}},
     12},
    {"an image resized to a size of each, behind zeros",
     PASTED "output first\n",
     {{0, 0, 0, 3, 3, 6, 6, 9},
      {-1, -1, -1, -1, -1, -1, -1, -1},
      {0, 0, 0, 0, 0, 0, 1, 2}},
     8},
    {"the largest of an image resized to a size of what is true",
     PEAKS(EIGHT_ROWS) "output w\n",
     {{18, 9, 18, 6, 18, 15, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {18, 3, 18, 18, 18, 6, 18, 15, 18, 9, 18, 12}},
     12},
    {"the largest of an image resized to a size of each",
     PEAKS(FOUR_ROWS) "output w\n",
     {{6, 9, 3, 6, 9, 15, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
      {0, 1.5F, 9, 18, 3, 6, 9, 15, 6, 9, 9, 12}},
     12},
    {"rows up to a size, with zeros behind",
     KEPT "init o i 1 -1\ninit k i 2 -1 2\ninit a i 1 1\nnode Unsqueeze y,a -> c\n"
          "node Concat c,c -> d axis=1\nnode Reshape d,o -> flat\n"
          "init six i 1 6\ninit two i 1 2\nnode Sub six,n -> r\nnode Mul r,two -> v\n"
          "init o2 i 1 0\nnode Concat o2,v -> p axis=0\nnode Pad flat,p -> w\n"
          "output w\n",
     {{3, 3, 2, 2, 5, 5, 0, 0, 0, 0, 0, 0},
      {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
      {1, 1, 6, 6, 2, 2, 5, 5, 3, 3, 4, 4}},
     12},
    {"a branch for no rows at all",
     KEPT "node Size y -> s\ninit none i - 0\nnode Equal s,none -> c\n"
          "node If c -> w then_branch={ else_branch={\ninit e f 0\noutput e\n}\n"
          "node Neg y -> q\noutput q\n}\noutput w\n",
     {{-3, -2, -5, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {-1, -6, -2, -5, -3, -4}},
     6},
    {"rows up to a larger size",
     KEPT "init seven i 1 7\ninit o2 i 1 0\nnode Sub seven,n -> r\n"
          "node Max r,o2 -> v\nnode Concat o2,v -> p axis=0\nnode Pad y,p -> w\n"
          "output w\n",
     {{3, 2, 5, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0}, {1, 6, 2, 5, 3, 4, 0}},
     7},
    {"the one before the last, beside the first",
     KEPT "init f f 2 7 8\nnode Concat f,y -> q axis=0\ninit k i 2 -2 0\n"
          "node Gather q,k -> w\noutput w\n",
     {{2, 7}, {7, 7}, {3, 7}},
     2},
    {"sums from the last on",
     KEPT "init a i - 0\nnode CumSum y,a -> w reverse=1\noutput w\n",
     {{10, 7, 5, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {21, 20, 14, 12, 7, 4}},
     6},
    {"whether all are",
     KEPT "node Greater y,z -> g\n"
          "node ReduceMin g -> h keepdims=1\nnode Cast h -> w to=1\noutput w\n",
     {{1}, {1}, {1}},
     1},
    {"a matrix of them and a vector",
     KEPT "init a i 1 1\nnode Unsqueeze y,a -> c\nnode Concat c,c -> d axis=1\n"
          "init v f 2 2 1\nnode MatMul d,v -> w\noutput w\n",
     {{9, 6, 15, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {3, 18, 6, 15, 9, 12}},
     6},
    {"the first one, stretched to all",
     KEPT "init b i 1 0\ninit e i 1 1\nnode Slice y,b,e -> q\nnode Sub y,q -> s\n"
          "init c f - 9\nnode Add s,c -> w\noutput w\n",
     {{9, 8, 11, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {9, 14, 10, 13, 11, 12}},
     6},
    {"how many a batch of the first one has",
     KEPT "init b i 1 0\ninit e i 1 1\nnode Slice y,b,e -> q\nnode Unsqueeze q,b -> u\n"
          "node Shape u -> v\nnode Cast v -> w to=1\noutput w\n",
     {{1, 1}, {1, 0}, {1, 1}},
     2},
    {"the second of two sizes that were floats",
     KEPT "init less i 2 0 1\nnode Concat n,n -> nn axis=0\nnode Sub nn,less -> s\n"
          "node Cast s -> f to=1\nnode Cast f -> t2 to=7\ninit one i 1 1\n"
          "node Gather t2,one -> k\ninit o i 1 0\nnode Max k,o -> k0\n"
          "node TopK x,k0 -> w,j\noutput w\n",
     {{5, 3, -1, -1, -1}, {-1, -1, -1, -1, -1}, {6, 5, 4, 3, 2}},
     5},
    {"columns that are chosen",
     KEPT "init a i 1 1\nnode Unsqueeze y,a -> c\nnode Neg c -> d\n"
          "node Concat c,d,c -> q axis=1\ninit k b 3 0 1 0\n"
          "node Compress q,k -> w axis=1\noutput w\n",
     {{-3, -2, -5, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {-1, -6, -2, -5, -3, -4}},
     6},
    {"rows written where they came from",
     KEPT "init five f - 5\nnode Mul y,five -> q\nnode Squeeze i -> j\n"
          "node ScatterElements x,j,q -> w axis=0\noutput w\n",
     {{15, -1, 10, 0, 25, -4}, {-1, -2, -3, -4, -5, -6}, {5, 30, 10, 25, 15, 20}},
     6},
    {"boxes that stay, and what was found of them",
     KEPT BOXES "node Gather y,r -> w\noutput w\n",
     {{5, 3, 2, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}, {6, 5, 4, 3, 2, 1}},
     6},
    {"the first of the boxes that stay, and how many do",
     KEPT BOXES "init b0 i 1 0\ninit two i 1 2\nnode Slice r,b0,two -> r2\n"
                "node Gather y,r2 -> w\nnode Shape r -> l\nnode Cast l -> lf to=1\n"
                "node Concat lf,w -> v axis=0\noutput v\n",
     {{3, 5, 3}, {0, -1, -1}, {6, 6, 5}},
     3},
    {"the first of the boxes that stay",
     KEPT BOXES "init b0 i 1 0\ninit two i 1 2\nnode Slice r,b0,two -> r2\n"
                "node Gather y,r2 -> w\noutput w\n",
     {{5, 3}, {-1, -1}, {6, 5}},
     2},
};

Test(counted, rows_that_count_come_first)
{
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int opset = cases[c].opset ? cases[c].opset : 21;
        struct free_model m = free_model_of_opset(opset, cases[c].text, "", "", "");
        struct imported x;
        strata_error err = {0};
        int64_t n;
        cr_assert_eq(imported_open(&x, m.onnx, m.registry, NULL, &err), STRATA_OK,
                     "%s: %s", cases[c].name, err.message);
        for (int k = 0; k < 3; k++) {
            memcpy(imported_data(&x, 0, &n), given[k], sizeof given[k]);
            cr_assert_eq(strata_context_run(x.context, &err), STRATA_OK, "%s",
                         err.message);
            const float *found = imported_data(&x, 1, &n);
            cr_assert_eq(n, cases[c].n, "%s: %lld elements", cases[c].name, (long long)n);
            for (int64_t i = 0; i < n; i++)
                cr_expect_eq(found[i], cases[c].wanted[k][i],
                             "%s, run %d, element %lld: %g, should be %g", cases[c].name,
                             k, (long long)i, (double)found[i],
                             (double)cases[c].wanted[k][i]);
        }
        imported_free(&x);
        free_model_close(&m);
    }
}

static const struct {
    const char *name, *text, *says;
} refused[] = {
    {"a mean", KEPT "node ReduceMean y -> w\noutput w\n",
     "it is the mean along rows whose number values tell"},
    {"the last ones",
     KEPT "init b i 1 -2\ninit e i 1 9\nnode Slice y,b,e -> w\noutput w\n",
     "it takes the last of rows whose number values tell"},
    {"places from the end", KEPT "init k i 1x1 -1\nnode GatherND y,k -> w\noutput w\n",
     "its indices are from the end of rows whose number values tell"},
    {"two rows of them",
     KEPT "node Concat y,y -> q axis=0\ninit s i 2 2 -1\nnode Reshape q,s -> w\n"
          "output w\n",
     "its dims divide rows whose number values tell"},
    {"halves", KEPT "node Split y -> w,v num_outputs=2\noutput w\n",
     "it divides rows whose number values tell"},
    {"rows and as many columns",
     KEPT "init a i 1 1\nnode Unsqueeze y,a -> c\ninit s i 2 1 6\n"
          "node Expand c,s -> q\ninit b i 1 0\nnode Slice q,b,n,a -> w\noutput w\n",
     "two of its dims hang on how many rows values tell"},
    {"columns that values choose",
     KEPT "init a i 1 1\nnode Unsqueeze y,a -> c\ninit s i 2 1 6\n"
          "node Expand c,s -> q\nnode Compress q,m -> w axis=1\noutput w\n",
     "two of its dims hang on how many rows values tell"},
    {"twice as many rows, of zeros",
     KEPT "init o i 1 0\nnode Concat o,n -> p axis=0\nnode Pad y,p -> w\noutput w\n",
     "not up to one size that holds them all"},
    {"a norm along the rows",
     KEPT "init g f 1 1\nnode LayerNormalization y,g -> w\noutput w\n",
     "lie where it does not take them"},
    {"a round for each, which hang on those before",
     ROUNDS "node Add s,v -> r\n" APPEND "output w\n",
     "it reads an image whose size is computed, or a state, in a Loop"},
    {"a round for each, of all of them",
     ROUNDS "node Mul y,v -> u\nnode ReduceSum u -> r keepdims=0\n" APPEND "output w\n",
     "it reads rows whose number values tell, in a Loop"},
    {"a round for each, that leaves all of them",
     COUNT "node Loop trips,go -> w body={\n" NUMBER
           "node Neg y -> o\nnode Identity c -> c1\noutput c1\noutput o\n}\noutput w\n",
     "each round leaves rows whose number values tell, in a Loop"},
    {"a round for each, that leaves an image of its own size",
     COUNT "node Loop trips,go -> w body={\n" NUMBER ELEMENT
           "node Cast v -> h to=7\ninit o i 3 1 1 2\nnode Concat o,h -> size axis=0\n"
           "init im f 1x1x2x2 0 1 3 2\n"
           "node Mul im,v -> i2\nnode Resize i2,_,_,size -> r mode='linear'\n"
           "node Identity c -> c1\noutput c1\noutput r\n}\noutput w\n",
     "a round leaves what has a computed size, or a state, in a Loop"},
    {"a round for each, until one is large", UNTIL "output w\n",
     "the condition of a round"},
    {"a round for each, with an image that may be of any size",
     COUNT "node Loop trips,go -> w body={\n" NUMBER ELEMENT
           "node Cast v -> h to=7\ninit o i 3 1 1 2\nnode Concat o,h -> size axis=0\n"
           "init im f 1x1x2x2 0 1 3 2\nnode Mul im,v -> i2\n"
           "node Resize i2,_,_,size -> big mode='linear'\ninit fs i 3 1 1 -1\n"
           "node Reshape big,fs -> r\nnode Identity c -> c1\noutput c1\noutput r\n}\n"
           "output w\n",
     "gives other dims to an image of computed size"},
    {"an operator that takes none", KEPT "node Hardmax y -> w axis=0\noutput w\n",
     "with which it is not taken: export the network up to there"},
    {"a size that has to be constant",
     KEPT "init v f 2 0 1\nnode OneHot n,n,v -> w\noutput w\n",
     "it hangs on how many rows values tell"},
};

Test(counted, what_is_not_taken_is_told)
{
    for (size_t c = 0; c < sizeof refused / sizeof *refused; c++) {
        struct free_model m = free_model_open(refused[c].text, "", "", "");
        struct import *im;
        strata_error err = {0};
        cr_expect_eq(import_make(&im, m.onnx, m.registry, NULL, &err),
                     STRATA_EUNSUPPORTED, "%s", refused[c].name);
        cr_expect_not_null(strstr(err.message, refused[c].says), "%s: %s",
                           refused[c].name, err.message);
        import_free(im);
        free_model_close(&m);
    }
}

/* Where two boxes of one class are read, the layer makes two. */
Test(counted, boxes_that_nobody_reads_are_not_made)
{
    struct free_model m = free_model_open(
        KEPT BOXES "init b0 i 1 0\ninit two i 1 2\nnode Slice r,b0,two -> r2\n"
                   "node Gather y,r2 -> w\noutput w\n",
        "", "", "");
    struct imported x;
    strata_error err = {0};
    cr_assert_eq(imported_open(&x, m.onnx, m.registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    cr_expect_not_null(strstr(x.text, "\nmax_output = 2\n"), "%s", x.text);
    imported_free(&x);
    free_model_close(&m);
}
