// Origin of the nodes of CUDA graphs: when, on which thread and at which line each node was captured or added.
// This makes it possible to attribute the kernels of replays to the code that they come from. Instantiation clones the
// nodes of a graph, and kernel records have the ids of the clones.

typedef struct {
  const void *graph, *original_graph, *node, *original_node;
  u32 type;
  const void *dependency, *executable;
} GraphData; // CUpti_GraphData
typedef struct { const void *context, *stream; const GraphData* graph; } GraphResource;
enum { GRAPHNODE_CREATED = 13, GRAPHNODE_CLONED = 20 };
enum { NODE_KERNEL = 0, NODE_MEMCPY = 1, NODE_MEMSET = 2 }; // CUgraphNodeType

static struct {
  // Encoded rows that have not been written yet, protected by stacks.lock; the fields are those of the last row.
  u8 data[32 << 10], *end;
  u32 rows, thread, stack;
  u64 node, original, us;
  PythonThread own;
  u64 nodes;
} graph_nodes;

static void graph_nodes_flush(void) {
  if (graph_nodes.rows)
    put_block(BLOCK_GRAPH_NODES, 0, 0, graph_nodes.rows, graph_nodes.data, (u32)(graph_nodes.end - graph_nodes.data));
  graph_nodes.rows = 0, graph_nodes.end = NULL;
}

// Writes the stacks, samples and graph nodes that were collected since the last time.
static void stacks_write(void) {
  if (!lock(&stacks.lock)) return;
  stacks_flush(), graph_nodes_flush();
  unlock(&stacks.lock);
}

// Runs on the thread that creates the node, so its stack cannot change during the call.
static u32 own_stack(u64 monotonic) {
  if (!stacks.every_us || !stacks.functions) return 0;
  u32 stack = 0;
  if (samples_python()) {
    if (graph_nodes.own.thread != tid()) graph_nodes.own = (PythonThread){ .thread = tid() };
    stack = python_walk(&graph_nodes.own, monotonic) ? stack_of_walk() : 0;
  }
  if (stack || !samples_native()) return stack;
  native_unwind(registers_here(), monotonic);
  return stack_of_native();
}

static void graph_node_heard(u32 id, const GraphResource* r) {
  const GraphData* g = r->graph;
  u64 node = 0, original = 0;
  // Another client may have enabled the entire domain.
  if (!cuptiGetGraphNodeId || session.whole_graphs) return;
  if (!g || g->type > NODE_MEMSET || cuptiGetGraphNodeId(g->node, &node) != OK) return;
  if (id == GRAPHNODE_CLONED && cuptiGetGraphNodeId(g->original_node, &original) != OK) return;
  u64 time = now();
  if (!lock(&stacks.lock)) {
    ADD(lost.unwritten, 1);
    return;
  }
  u32 stack = original ? 0 : own_stack(clock_now(CLOCK_MONOTONIC));
  if (!graph_nodes.end) {
    graph_nodes.end = graph_nodes.data;
    graph_nodes.node = graph_nodes.original = graph_nodes.us = graph_nodes.thread = graph_nodes.stack = 0;
  }
  u8* p = put_signed(graph_nodes.end, (i64)(node - graph_nodes.node));
  *p++ = original != 0;
  graph_nodes.node = node;
  if (original) {
    p = put_signed(p, (i64)(original - graph_nodes.original));
    graph_nodes.original = original;
  } else {
    p = put_signed(p, (i64)tid() - (i64)graph_nodes.thread);
    p = put_signed(p, (i64)(time / 1000 - graph_nodes.us));
    p = put_signed(p, (i64)stack - (i64)graph_nodes.stack);
    graph_nodes.thread = tid(), graph_nodes.us = time / 1000, graph_nodes.stack = stack;
  }
  graph_nodes.end = p, graph_nodes.rows++, graph_nodes.nodes++;
  if (p + 64 > graph_nodes.data + sizeof graph_nodes.data) stacks_flush(), graph_nodes_flush();
  unlock(&stacks.lock);
}

// Runs while the session is opened. Looks for the interpreter here, because a callback may be holding locks of the
// driver.
static void graph_nodes_hear(void) {
  if (!cuptiGetGraphNodeId || session.whole_graphs) return;
  PythonSymbols found = stacks.every_us ? python_symbols() : (PythonSymbols){ NULL, NULL, 0, 0 };
  if (!lock(&stacks.lock)) return;
  if (stacks.every_us && stacks_prepare()) python_take(&found);
  unlock(&stacks.lock);
  cuptiEnableCallback(1, subscription, DOMAIN_RESOURCE, GRAPHNODE_CREATED);
  cuptiEnableCallback(1, subscription, DOMAIN_RESOURCE, GRAPHNODE_CLONED);
}
