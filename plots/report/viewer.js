(() => {
'use strict';

const $ = (id) => document.getElementById(id);
const head = JSON.parse($('head').textContent);
const kindOf = Object.fromEntries(head.kinds.map((name, i) => [name, i]));
const eventOf = Object.fromEntries(head.events.map((name, i) => [name, i]));

// Colours of the steps of a packet's way: those of the figures.
const stepColours = ['#aaaaaa', '#787878', '#0072b2', '#009e73', '#d55e00', '#cc79a7', '#e69f00', '#56b4e9'];
const dropColour = '#b3001b';
const levelColour = '#4d6a7a';
const waitColours = {'no buffer': '#56b4e9', 'no credit': '#cc79a7', 'engine busy': '#e69f00', 'bus busy': '#b8a900', 'lower priority': '#8a8a8a', 'wire busy': '#0072b2'};

// ---- Unpacking -------------------------------------------------------------

async function unpack() {
  const text = atob($('packed').textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const n = head.n, r = {n};
  let p = 0;
  const number = () => {
    let v = 0, m = 1, b;
    do { b = raw[p++]; v += (b & 127) * m; m *= 128; } while (b > 127);
    return v;
  };
  const signed = () => { const v = number(); return v % 2 ? -(v + 1) / 2 : v / 2; };
  const small = {cause: Int32Array, wait: Int32Array, bytes: Uint32Array, count: Uint32Array, stall: Uint32Array};
  for (const c of head.columns) {
    const end = p + c.bytes;
    if (c.packing === 'u8') {
      r[c.name] = raw.slice(p, end);
    } else {
      const a = new (small[c.name] || Float64Array)(n);
      let last = 0;
      for (let i = 0; i < n; i++) {
        if (c.packing === 'uint') a[i] = number();
        else if (c.packing === 'int') a[i] = signed();
        else a[i] = last += signed();
      }
      r[c.name] = a;
    }
    p = end;
  }
  r.start = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    r.start[i] = r.end[i] - r.length[i];
    r.cause[i] = r.cause[i] ? i - r.cause[i] : -1; // the record's place, -1 for none
    r.wait[i] = r.wait[i] ? i - r.wait[i] : -1;
  }
  return r;
}

// ---- Lanes -----------------------------------------------------------------

// Classes of lanes, from the top of a card down.
const ARRIVE = 0, DEPART = 1, LEAVE = 2, DROP = 3, RECEIVE = 4, DMA = 5, SEND = 6, HANDLER = 7, POLLS = 8, WAIT = 9, LEVEL = 10, CREDIT = 11, BUS = 12;
const SUBS = 256, CLASSES = 16;

function laneKey(r, i) {
  const k = r.kind[i];
  let cls, sub = 0;
  switch (k) {
  case kindOf.box: case kindOf.poll: cls = HANDLER; sub = r.event[i]; break;
  case kindOf.polls: cls = POLLS; break;
  case kindOf.transfer: cls = DMA; break;
  case kindOf.receive: cls = RECEIVE; break;
  case kindOf.send: cls = SEND; break;
  case kindOf.wait: cls = WAIT; sub = r.reason[i]; break;
  case kindOf.enter: cls = ARRIVE; break;
  case kindOf.depart: cls = DEPART; break;
  case kindOf.leave: cls = head.verdicts[r.verdict[i]] === 'dropped' ? DROP : LEAVE; break;
  case kindOf.level:
    if (r.event[i] === eventOf.Credits) { cls = CREDIT; sub = r.peer[i]; } else { cls = LEVEL; sub = r.event[i]; }
    break;
  default: return -1;
  }
  return (r.card[i] * CLASSES + cls) * SUBS + sub;
}

const cardName = (c) => c === head.host ? 'host' : c === head.no_card ? '–' : head.cards[c] || 'card ' + c;

function laneName(cls, sub) {
  switch (cls) {
  case ARRIVE: return 'Arrivals upstream';
  case DEPART: return 'Departures over PCI';
  case LEAVE: return 'Packets out';
  case DROP: return 'Drops';
  case RECEIVE: return 'Receive engine';
  case DMA: return 'DMA engine';
  case SEND: return 'Send engine';
  case HANDLER: return head.events[sub];
  case POLLS: return 'Polls, runs of';
  case WAIT: return 'Wait: ' + head.reasons[sub];
  case LEVEL: return head.events[sub];
  case CREDIT: return 'Credits for ' + cardName(sub);
  case BUS: return 'PCI bus';
  }
  return '?';
}

function laneColour(cls, sub) {
  switch (cls) {
  case ARRIVE: case RECEIVE: return stepColours[2];
  case DEPART: case DMA: case BUS: return stepColours[4];
  case LEAVE: case SEND: return stepColours[6];
  case DROP: return dropColour;
  case HANDLER: return stepColours[head.steps[sub]] || stepColours[0];
  case POLLS: return stepColours[1];
  case WAIT: return waitColours[head.reasons[sub]] || '#8a8a8a';
  }
  return levelColour;
}

const laneShape = (cls) => cls <= DROP ? 'mark' : cls === LEVEL || cls === CREDIT ? 'level' : cls === WAIT ? 'count' : 'span';

function buildLanes(r) {
  const sizes = new Map();
  for (let i = 0; i < r.n; i++) {
    const k = laneKey(r, i);
    if (k >= 0) sizes.set(k, (sizes.get(k) || 0) + 1);
    if (r.kind[i] === kindOf.transfer) {
      const b = (255 * CLASSES + BUS) * SUBS;
      sizes.set(b, (sizes.get(b) || 0) + 1);
    }
  }
  const lanes = new Map();
  for (const [k, size] of sizes) {
    const cls = Math.floor(k / SUBS) % CLASSES, sub = k % SUBS, card = Math.floor(k / SUBS / CLASSES);
    lanes.set(k, {
      key: k, cls, sub, card: cls === BUS ? -1 : card, shape: laneShape(cls), name: laneName(cls, sub), colour: laneColour(cls, sub),
      size: 0, index: new Int32Array(size), y: -1,
    });
  }
  for (let i = 0; i < r.n; i++) {
    const k = laneKey(r, i);
    if (k < 0) continue;
    const l = lanes.get(k);
    l.index[l.size++] = i;
    if (r.kind[i] === kindOf.transfer) {
      const b = lanes.get((255 * CLASSES + BUS) * SUBS);
      b.index[b.size++] = i;
    }
  }
  for (const l of lanes.values()) index(r, l);
  return lanes;
}

// index makes a lane quick to look into: its records by their start, and
// running sums of the time that it is busy.
function index(r, l) {
  const n = l.size, ix = l.index;
  let sorted = true;
  for (let j = 1; j < n && sorted; j++) sorted = r.start[ix[j]] >= r.start[ix[j - 1]];
  if (!sorted) ix.sort((a, b) => r.start[a] - r.start[b] || a - b);
  l.start = new Float64Array(n);
  l.end = new Float64Array(n);
  for (let j = 0; j < n; j++) { l.start[j] = r.start[ix[j]]; l.end[j] = r.end[ix[j]]; }
  if (l.shape === 'span') {
    l.sum = new Float64Array(n + 1);
    for (let j = 0; j < n; j++) l.sum[j + 1] = l.sum[j] + l.end[j] - l.start[j];
  }
  if (l.shape === 'span' || l.shape === 'count') {
    // The latest end so far, by which records that still go on are found.
    l.reach = new Float64Array(n);
    for (let j = 0, m = -Infinity; j < n; j++) l.reach[j] = m = Math.max(m, l.end[j]);
  }
  if (l.shape === 'count') { // several at once: a level, and its running integral
    const ends = Float64Array.from(l.end).sort();
    l.at = new Float64Array(2 * n); l.level = new Int32Array(2 * n); l.integral = new Float64Array(2 * n);
    let a = 0, b = 0, level = 0, sum = 0, last = 0;
    l.top = 1;
    for (let k = 0; k < 2 * n; k++) {
      const up = a < n && l.start[a] < ends[b] || b >= n;
      const t = up ? l.start[a++] : ends[b++];
      sum += level * (k ? t - last : 0);
      level += up ? 1 : -1;
      l.at[k] = t; l.level[k] = level; l.integral[k] = sum;
      l.top = Math.max(l.top, level);
      last = t;
    }
  }
  if (l.shape === 'level') {
    l.value = new Uint32Array(n);
    l.top = 1;
    for (let j = 0; j < n; j++) { l.value[j] = r.count[ix[j]]; l.top = Math.max(l.top, l.value[j]); }
    const blocks = Math.ceil(n / BLOCK);
    l.high = new Uint32Array(blocks); l.low = new Uint32Array(blocks).fill(0xffffffff);
    for (let j = 0; j < n; j++) {
      const b = Math.floor(j / BLOCK);
      l.high[b] = Math.max(l.high[b], l.value[j]); l.low[b] = Math.min(l.low[b], l.value[j]);
    }
  }
}

const BLOCK = 64;

// after finds how many of a rising list lie at or below t, from a place that
// is not beyond it: steps that double, then halving.
function after(list, t, from) {
  const n = list.length;
  let lo = from, step = 1;
  while (lo + step <= n && list[lo + step - 1] <= t) { lo += step; step *= 2; }
  let hi = Math.min(lo + step, n);
  while (lo < hi) {
    const m = (lo + hi) >> 1;
    if (list[m] <= t) lo = m + 1; else hi = m;
  }
  return lo;
}

// busy is how long a lane was busy before t, j records of which have begun.
function busy(l, t, j) {
  if (j === 0) return 0;
  return l.sum[j - 1] + Math.max(0, Math.min(l.end[j - 1], t) - l.start[j - 1]);
}

// counted is the integral of a count up to t, k changes of which have happened.
function counted(l, t, k) {
  return k === 0 ? 0 : l.integral[k - 1] + l.level[k - 1] * (t - l.at[k - 1]);
}

// ---- Packets ---------------------------------------------------------------

// buildPackets lists the records of each packet, by the packets' numbers.
function buildPackets(r) {
  let lo = Infinity, hi = 0;
  for (let i = 0; i < r.n; i++) {
    const p = r.packet[i];
    if (p) { if (p < lo) lo = p; if (p > hi) hi = p; }
  }
  if (hi === 0) return {of: () => new Int32Array(0), lo: 0, hi: 0};
  if (hi - lo > 8 * r.n) { // numbers that jump: a table by number
    const m = new Map();
    for (let i = 0; i < r.n; i++) {
      if (!r.packet[i]) continue;
      if (!m.has(r.packet[i])) m.set(r.packet[i], []);
      m.get(r.packet[i]).push(i);
    }
    return {of: (p) => m.get(p) || [], lo, hi};
  }
  const first = new Uint32Array(hi - lo + 2);
  for (let i = 0; i < r.n; i++) if (r.packet[i]) first[r.packet[i] - lo + 1]++;
  for (let p = 1; p < first.length; p++) first[p] += first[p - 1];
  const fill = first.slice(), list = new Int32Array(first[first.length - 1]);
  for (let i = 0; i < r.n; i++) if (r.packet[i]) list[fill[r.packet[i] - lo]++] = i;
  return {of: (p) => p < lo || p > hi ? [] : list.subarray(first[p - lo], first[p - lo + 1]), lo, hi};
}

// ---- The viewer ------------------------------------------------------------

const LABELS = 152, AXIS = 24, HEADER = 20, ROW = 15, LEVELROW = 24;

function start(r) {
  const lanes = buildLanes(r), packets = buildPackets(r);
  const canvas = $('canvas'), ctx = canvas.getContext('2d'), over = $('overview'), octx = over.getContext('2d');
  const tip = $('tip'), detail = $('detail');
  let whole0 = Infinity, whole1 = -Infinity;
  for (let i = 0; i < r.n; i++) { whole0 = Math.min(whole0, r.start[i]); whole1 = Math.max(whole1, r.end[i]); }
  if (whole1 - whole0 < 1000) whole1 = whole0 + 1000;
  const state = {
    t0: whole0, t1: whole1, scroll: 0, chosen: -1, packet: 0, path: [], hover: -1, folded: new Set(),
    hits: new Int32Array(0), hit: -1, query: null,
    only: null, // lanes of the chosen packet's way, when only those are shown
  };
  const view = {width: 0, height: 0, dpr: 1, pixels: null, frame: 0, frames: 0};

  // Groups: the bus, cards that receive, the other cards.
  const groups = [];
  const byCard = new Map();
  for (const l of lanes.values()) {
    if (!byCard.has(l.card)) byCard.set(l.card, []);
    byCard.get(l.card).push(l);
  }
  for (const [card, ls] of byCard) {
    // Depths of queues last: they are recorded only where polls are.
    const rank = (l) => (l.cls === LEVEL && l.sub >= eventOf['Queue Q0'] && l.sub <= eventOf['Queue Q6'] ? 9000 : 0) + l.cls * 1000 + (l.cls === HANDLER ? 500 - l.sub : l.sub) + (l.cls === HANDLER && l.sub < 7 ? 1500 : 0);
    ls.sort((a, b) => rank(a) - rank(b));
    groups.push({card, name: card < 0 ? 'Bus' : cardName(card), lanes: ls, receives: ls.some((l) => l.cls === ARRIVE), y: 0});
  }
  groups.sort((a, b) => (a.card < 0 ? 0 : a.receives ? 1 : 2) - (b.card < 0 ? 0 : b.receives ? 1 : 2) || a.card - b.card);
  let total = 0; // height of all rows

  function layout() {
    let y = 0;
    for (const g of groups) {
      g.y = -1;
      for (const l of g.lanes) l.y = -1;
      const kept = state.only ? g.lanes.filter((l) => state.only.has(l)) : g.lanes;
      if (!kept.length) continue;
      g.y = y; y += HEADER;
      if (!state.folded.has(g.card)) for (const l of kept) {
        l.height = l.shape === 'level' || l.shape === 'count' ? LEVELROW : ROW;
        l.y = y; y += l.height;
      }
      y += 6;
    }
    total = y;
    state.scroll = Math.max(0, Math.min(state.scroll, total - (view.height - AXIS)));
  }

  function resize() {
    view.dpr = window.devicePixelRatio || 1;
    for (const [c, x] of [[canvas, ctx], [over, octx]]) {
      const b = c.getBoundingClientRect();
      c.width = Math.max(1, Math.round(b.width * view.dpr)); c.height = Math.max(1, Math.round(b.height * view.dpr));
      x.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
    }
    view.width = canvas.width / view.dpr; view.height = canvas.height / view.dpr;
    view.pixels = ctx.createImageData(canvas.width, canvas.height);
    view.words = new Uint32Array(view.pixels.data.buffer);
    view.background = null;
    layout();
    redraw();
  }

  // ---- Time and place
  const plotWidth = () => view.width - LABELS;
  const xOf = (t) => LABELS + (t - state.t0) / (state.t1 - state.t0) * plotWidth();
  const tOf = (x) => state.t0 + (x - LABELS) / plotWidth() * (state.t1 - state.t0);
  const yOf = (l) => AXIS + l.y - state.scroll;
  const least = 2e4; // ps: the shortest stretch shown, less than a cycle

  function show(t0, t1) {
    let span = Math.min(Math.max(t1 - t0, least), (whole1 - whole0) * 1.04);
    let mid = (t0 + t1) / 2;
    mid = Math.max(whole0, Math.min(whole1, mid));
    state.t0 = mid - span / 2; state.t1 = mid + span / 2;
    const room = (whole1 - whole0) * 0.02;
    if (state.t0 < whole0 - room) { state.t1 += whole0 - room - state.t0; state.t0 = whole0 - room; }
    if (state.t1 > whole1 + room) { state.t0 -= state.t1 - whole1 - room; state.t1 = whole1 + room; }
    redraw();
  }
  function zoom(factor, x) {
    const t = tOf(x === undefined ? LABELS + plotWidth() / 2 : x);
    const span = Math.min(Math.max((state.t1 - state.t0) * factor, least), (whole1 - whole0) * 1.04);
    const f = span / (state.t1 - state.t0);
    show(t - (t - state.t0) * f, t + (state.t1 - t) * f);
  }
  function move(dx, dy) {
    const dt = dx / plotWidth() * (state.t1 - state.t0);
    state.scroll = Math.max(0, Math.min(state.scroll + dy, Math.max(0, total - (view.height - AXIS))));
    show(state.t0 + dt, state.t1 + dt);
  }

  // ---- Texts
  function duration(ps) {
    const a = Math.abs(ps);
    if (a < 1e6) return trim(ps / 1e3) + ' ns';
    if (a < 1e9) return trim(ps / 1e6) + ' µs';
    if (a < 1e12) return trim(ps / 1e9) + ' ms';
    return trim(ps / 1e12) + ' s';
  }
  const trim = (v) => String(+v.toFixed(3));
  const moment = (t) => ((t + head.base) / 1e6).toLocaleString('en', {minimumFractionDigits: 3, maximumFractionDigits: 3}).replace(/,/g, '\u202f') + ' µs';
  function title(i) {
    const k = r.kind[i], e = head.events[r.event[i]];
    if (k === kindOf.polls) return r.count[i] + (r.count[i] === 1 ? ' poll' : ' polls') + (r.queue[i] !== head.no_queue ? ', found a message in Q' + r.queue[i] : ', found none');
    if (k === kindOf.poll) return e + (r.count[i] ? ', hit' : ', miss');
    if (k === kindOf.wait) return 'Wait: ' + head.reasons[r.reason[i]] + (e ? ' (for ' + e + ')' : '');
    if (k === kindOf.enter) return 'Arrival upstream';
    if (k === kindOf.depart) return 'Departure to ' + cardName(r.peer[i]);
    if (k === kindOf.leave) {
      const v = head.verdicts[r.verdict[i]];
      const title = v.charAt(0).toUpperCase() + v.slice(1);
      return v === 'dropped' || v === 'stranded' ? title + ': ' + head.reasons[r.reason[i]] : title;
    }
    if (k === kindOf.level) return e + (r.peer[i] !== head.no_card ? ' for ' + cardName(r.peer[i]) : '') + ': ' + r.count[i];
    return e || head.kinds[k];
  }
  // waited tells how long a record waited and why.
  function waited(i) {
    const w = r.wait[i], ready = r.ready[i];
    if (w >= 0) return duration(r.length[w]) + ', ' + head.reasons[r.reason[w]];
    if (ready > 0 && r.kind[i] === kindOf.transfer) return duration(ready) + ', for the bus';
    if (ready > 0 && (r.kind[i] === kindOf.box)) return duration(ready) + ' since its message was ready';
    return '';
  }
  function facts(i) {
    const f = [];
    const k = r.kind[i];
    f.push(['on', cardName(r.card[i])]);
    if (r.packet[i]) f.push(['packet', String(r.packet[i])]);
    f.push([r.length[i] ? 'starts' : 'at', moment(r.start[i])]);
    if (r.length[i]) f.push(['lasts', duration(r.length[i])]);
    if (k === kindOf.wait) f.push(['reason', head.reasons[r.reason[i]]]);
    const w = waited(i);
    if (w) f.push(['waited', w]);
    if (r.cause[i] >= 0) f.push(['cause', title(r.cause[i]) + ', ' + cardName(r.card[r.cause[i]]) + (r.packet[r.cause[i]] && r.packet[r.cause[i]] !== r.packet[i] ? ', packet ' + r.packet[r.cause[i]] : '')]);
    if (r.queue[i] !== head.no_queue && k !== kindOf.polls && k !== kindOf.poll) f.push(['queue', 'Q' + r.queue[i]]);
    if (r.peer[i] !== head.no_card && k !== kindOf.level) f.push([k === kindOf.leave ? 'came in by' : 'peer', cardName(r.peer[i])]);
    if (r.bytes[i]) f.push(['bytes', String(r.bytes[i])]);
    if (r.cycles[i]) f.push([k === kindOf.transfer ? 'bus clocks held' : 'cycles', r.cycles[i] + (r.stall[i] ? ' and ' + r.stall[i] + ' lost' : '')]);
    if (r.number[i]) f.push(['record', r.card[i] + '#' + r.number[i]]);
    return f;
  }

  // ---- Drawing
  let pending = false;
  function redraw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; draw(); });
  }

  // tints of a colour over white, as words of pixels.
  const tints = new Map();
  function tint(colour) {
    if (!tints.has(colour)) {
      const v = parseInt(colour.slice(1), 16), c = [v >> 16 & 255, v >> 8 & 255, v & 255];
      const t = new Uint32Array(33);
      for (let k = 0; k <= 32; k++) {
        const f = k === 0 ? 0 : 0.18 + 0.82 * k / 32;
        const m = c.map((x) => Math.round(255 + (x - 255) * f));
        t[k] = (255 << 24 | m[2] << 16 | m[1] << 8 | m[0]) >>> 0;
      }
      tints.set(colour, t);
    }
    return tints.get(colour);
  }

  function visibleLanes() {
    const out = [];
    for (const g of groups) for (const l of g.lanes) {
      if (l.y < 0) continue;
      const y = yOf(l);
      if (y + l.height > AXIS && y < view.height) out.push(l);
    }
    return out;
  }

  // range is which records of a lane touch the view.
  function range(l) {
    const hi = after(l.start, state.t1, 0);
    const lo = l.reach ? lower(l.reach, state.t0) : Math.max(0, lower(l.start, state.t0) - 1);
    return [Math.min(lo, hi), hi];
  }
  function lower(list, t) { // first at or above t
    let lo = 0, hi = list.length;
    while (lo < hi) { const m = (lo + hi) >> 1; if (list[m] < t) lo = m + 1; else hi = m; }
    return lo;
  }

  function draw() {
    const began = performance.now();
    const W = canvas.width, H = canvas.height, d = view.dpr, words = view.words;
    const shown = visibleLanes();
    words.fill(0xffffffff);
    const left = Math.round(LABELS * d), top = Math.round(AXIS * d), cols = W - left;
    const sparse = [];
    for (const l of shown) {
      const [lo, hi] = range(l);
      if (l.shape === 'span' && hi - lo <= plotWidth() / 3) { sparse.push([l, lo, hi]); continue; }
      if (l.shape === 'mark' && hi - lo <= plotWidth() / 3) { sparse.push([l, lo, hi]); continue; }
      const y0 = Math.max(top, Math.round((yOf(l) + 2) * d)), y1 = Math.min(H, Math.round((yOf(l) + l.height - 2) * d));
      if (y1 <= y0) continue;
      const row = new Uint32Array(cols).fill(0xffffffff);
      const per = (state.t1 - state.t0) / cols;
      if (l.shape === 'span') shareRow(l, row, cols, per);
      else if (l.shape === 'mark') markRow(l, row, cols, per);
      else { levelRows(l, y0, y1, left, cols, per, W); continue; }
      for (let y = y0; y < y1; y++) words.set(row, y * W + left);
    }
    ctx.putImageData(view.pixels, 0, 0);
    ctx.save();
    ctx.beginPath(); ctx.rect(LABELS, AXIS, plotWidth(), view.height - AXIS); ctx.clip();
    grid();
    for (const [l, lo, hi] of sparse) l.shape === 'span' ? spans(l, lo, hi) : marks(l, lo, hi);
    if (state.path.length) way();
    mark(state.hover, '#000', 1);
    mark(state.chosen, '#000', 1.6);
    ctx.restore();
    labels(shown);
    axis();
    overview();
    view.frame = performance.now() - began;
    view.frames++;
  }

  // shareRow shades each dot by the share of its time that the lane is busy.
  function shareRow(l, row, cols, per) {
    const t = tint(l.colour);
    let j = after(l.start, state.t0, 0), b = busy(l, state.t0, j);
    for (let x = 0; x < cols; x++) {
      const t1 = state.t0 + (x + 1) * per;
      j = after(l.start, t1, j);
      const c = busy(l, t1, j), f = (c - b) / per;
      if (f > 0) row[x] = t[Math.max(1, Math.min(32, Math.round(f * 32)))];
      b = c;
    }
  }
  function markRow(l, row, cols, per) {
    const t = tint(l.colour);
    let j = after(l.start, state.t0, 0);
    for (let x = 0; x < cols; x++) {
      const k = after(l.start, state.t0 + (x + 1) * per, j);
      if (k > j) row[x] = t[l.cls === DROP ? 32 : Math.min(32, 8 + 8 * (k - j))];
      j = k;
    }
  }
  // levelRows draws a level: dark up to the least, paler up to the greatest
  // value within each dot.
  function levelRows(l, y0, y1, left, cols, per, W) {
    const words = view.words, t = tint(l.colour), high = y1 - y0;
    const at = l.shape === 'count' ? l.at : l.start;
    let j = after(at, state.t0, 0), integral = l.shape === 'count' ? counted(l, state.t0, j) : 0;
    for (let x = 0; x < cols; x++) {
      const t1 = state.t0 + (x + 1) * per, k = after(at, t1, j);
      let lo, hi;
      if (l.shape === 'count') {
        const c = counted(l, t1, k);
        lo = hi = (c - integral) / per;
        integral = c;
      } else {
        if (k === 0) { j = k; continue; }
        const v = l.value[Math.max(j - 1, 0)];
        [lo, hi] = j === 0 ? [0xffffffff, 0] : [v, v];
        for (let m = j; m < k;) {
          if (m % BLOCK === 0 && m + BLOCK <= k) {
            const b = m / BLOCK;
            lo = Math.min(lo, l.low[b]); hi = Math.max(hi, l.high[b]); m += BLOCK;
          } else {
            lo = Math.min(lo, l.value[m]); hi = Math.max(hi, l.value[m]); m++;
          }
        }
      }
      j = k;
      const a = Math.round(lo / l.top * high), b = Math.max(Math.round(hi / l.top * high), hi > 0 ? 1 : 0);
      for (let y = 0; y < b; y++) words[(y1 - 1 - y) * W + left + x] = y < a ? t[14] : t[7];
      if (b > 0) words[(y1 - b) * W + left + x] = t[28];
    }
  }

  function box(l, i, colour) {
    const y = yOf(l) + 2, h = l.height - 4;
    if (l.cls === DMA && r.ready[i] > 0) { // it has asked for the bus
      const x = xOf(r.start[i] - r.ready[i]);
      ctx.fillStyle = '#f3dd8f';
      ctx.fillRect(x, y + 3, Math.max(xOf(r.start[i]) - x, 0.5), h - 6);
    }
    const x = xOf(r.start[i]);
    ctx.fillStyle = colour;
    ctx.fillRect(x, y, Math.max(xOf(r.end[i]) - x, 1), h);
  }
  function spans(l, lo, hi) {
    for (let j = lo; j < hi; j++) {
      const i = l.index[j];
      box(l, i, l.cls === POLLS && r.queue[i] === head.no_queue ? '#c9c9c9' : l.cls === HANDLER && r.kind[i] === kindOf.poll && !r.count[i] ? '#b4b4b4' : l.cls === BUS ? busColour(i) : l.colour);
    }
    // Names in boxes that are wide enough.
    ctx.font = '10px system-ui, "Liberation Sans", Arial, sans-serif';
    ctx.textBaseline = 'middle';
    for (let j = lo; j < hi; j++) {
      const i = l.index[j], x0 = Math.max(xOf(r.start[i]), LABELS), x1 = Math.min(xOf(r.end[i]), view.width);
      if (x1 - x0 < 26) continue;
      const text = r.packet[i] ? (x1 - x0 > 90 ? 'packet ' : '') + r.packet[i] : l.cls === POLLS ? r.count[i] + '' : '';
      if (text && ctx.measureText(text).width + 6 < x1 - x0) { ctx.fillStyle = '#fff'; ctx.fillText(text, x0 + 3, yOf(l) + l.height / 2 + 0.5); }
    }
  }
  const busColours = ['#0072b2', '#d55e00', '#009e73', '#e69f00', '#cc79a7', '#56b4e9'];
  const busColour = (i) => r.card[i] === head.host ? '#787878' : busColours[r.card[i] % busColours.length];
  function marks(l, lo, hi) {
    ctx.fillStyle = l.colour;
    const y = yOf(l) + 2, h = l.height - 4;
    for (let j = lo; j < hi; j++) ctx.fillRect(xOf(l.start[j]) - 0.75, y, 1.5, h);
  }

  // laneOf is the lane that a record is drawn on.
  const laneOf = (i) => lanes.get(laneKey(r, i));
  function place(i) { // where a record stands on the canvas, or nothing
    if (i < 0) return null;
    const l = laneOf(i);
    if (!l || l.y < 0) return null;
    const x0 = xOf(r.start[i]), x1 = Math.max(xOf(r.end[i]), x0 + 1);
    return {l, x0, x1, y0: yOf(l) + 2, y1: yOf(l) + l.height - 2, mid: yOf(l) + l.height / 2};
  }
  function mark(i, colour, width) {
    const p = place(i);
    if (!p) return;
    ctx.strokeStyle = colour; ctx.lineWidth = width;
    ctx.strokeRect(p.x0 - 1.5, p.y0 - 1.5, p.x1 - p.x0 + 3, p.y1 - p.y0 + 3);
  }
  // way lights up the records of the chosen packet, with arrows from cause to
  // effect, over everything else paled.
  function way() {
    ctx.fillStyle = 'rgba(255,255,255,.74)';
    ctx.fillRect(LABELS, AXIS, plotWidth(), view.height - AXIS);
    const busLane = lanes.get((255 * CLASSES + BUS) * SUBS);
    for (const i of state.path) {
      const p = place(i);
      if (r.kind[i] === kindOf.transfer && busLane && busLane.y >= 0) box(busLane, i, busColour(i));
      if (!p) continue;
      if (p.l.shape === 'level') continue;
      if (p.l.shape === 'mark') { ctx.fillStyle = p.l.colour; ctx.fillRect(p.x0 - 1.5, p.y0, 3, p.y1 - p.y0); } else box(p.l, i, p.l.colour);
    }
    ctx.strokeStyle = ctx.fillStyle = '#111'; ctx.lineWidth = 1.1;
    for (const i of state.path) {
      const c = r.cause[i];
      if (c < 0) continue;
      const p = place(i), q = place(c);
      if (!p || !q) continue;
      // An effect of an engine may begin while its cause goes on.
      arrow(Math.min(q.x1, Math.max(p.x0, q.x0)), q.mid, p.x0, p.mid);
    }
  }
  function arrow(x0, y0, x1, y1) {
    if (Math.max(x0, x1) < LABELS - 50 || Math.min(x0, x1) > view.width + 50) return;
    ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke();
    const l = Math.hypot(x1 - x0, y1 - y0);
    if (l < 5) return;
    const ux = (x1 - x0) / l, uy = (y1 - y0) / l, s = 6;
    ctx.beginPath(); ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - s * (ux + 0.42 * uy), y1 - s * (uy - 0.42 * ux));
    ctx.lineTo(x1 - s * (ux - 0.42 * uy), y1 - s * (uy + 0.42 * ux));
    ctx.fill();
  }

  function tickStep() {
    const want = (state.t1 - state.t0) / (plotWidth() / 110), p = 10 ** Math.floor(Math.log10(want));
    for (const f of [1, 2, 5, 10]) if (p * f >= want) return p * f;
    return p * 10;
  }
  function ticks() {
    const step = tickStep(), out = [];
    for (let k = Math.ceil((state.t0 + head.base) / step); k * step - head.base <= state.t1; k++) out.push(k * step - head.base);
    return out;
  }
  function grid() {
    ctx.strokeStyle = 'rgba(0,0,0,.07)'; ctx.lineWidth = 1;
    ctx.beginPath();
    for (const t of ticks()) { const x = Math.round(xOf(t)) + 0.5; ctx.moveTo(x, AXIS); ctx.lineTo(x, view.height); }
    ctx.stroke();
  }
  function axis() {
    ctx.fillStyle = '#fff'; ctx.fillRect(0, 0, view.width, AXIS);
    ctx.fillStyle = '#5c6670'; ctx.font = '11px system-ui, "Liberation Sans", Arial, sans-serif'; ctx.textBaseline = 'middle'; ctx.textAlign = 'left';
    ctx.fillText('time (µs)', 8, AXIS / 2);
    const step = tickStep(), digits = Math.max(0, Math.ceil(-Math.log10(step / 1e6) - 1e-9));
    ctx.textAlign = 'center';
    ctx.strokeStyle = '#5c6670'; ctx.lineWidth = 1; ctx.beginPath();
    let last = LABELS - 20;
    for (const t of ticks()) {
      const x = xOf(t);
      if (x < LABELS) continue;
      ctx.moveTo(Math.round(x) + 0.5, AXIS - 4); ctx.lineTo(Math.round(x) + 0.5, AXIS);
      const text = ((t + head.base) / 1e6).toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits}).replace(/,/g, '\u202f');
      const w = ctx.measureText(text).width / 2;
      if (x - w < last + 6 || x + w > view.width) continue;
      ctx.fillText(text, x, AXIS / 2 - 1);
      last = x + w;
    }
    ctx.moveTo(LABELS, AXIS - 0.5); ctx.lineTo(view.width, AXIS - 0.5); ctx.stroke();
    ctx.textAlign = 'left';
  }
  function labels(shown) {
    ctx.save();
    ctx.beginPath(); ctx.rect(0, AXIS, view.width, view.height - AXIS); ctx.clip();
    ctx.fillStyle = '#fff'; ctx.fillRect(0, AXIS, LABELS, view.height - AXIS);
    ctx.textBaseline = 'middle';
    ctx.lineWidth = 1;
    for (const l of shown) {
      const y = yOf(l);
      ctx.strokeStyle = '#eef1f3';
      ctx.beginPath(); ctx.moveTo(0, Math.round(y + l.height) - 0.5); ctx.lineTo(view.width, Math.round(y + l.height) - 0.5); ctx.stroke();
      ctx.fillStyle = l.colour; ctx.fillRect(8, y + 3, 3, l.height - 6);
      ctx.fillStyle = '#1d2329'; ctx.font = '11px system-ui, "Liberation Sans", Arial, sans-serif';
      ctx.fillText(l.name, 16, y + l.height / 2 + 0.5, LABELS - 20 - (l.top ? 22 : 0));
      if (l.top && l.shape !== 'span') {
        ctx.fillStyle = '#8a939a'; ctx.font = '9px system-ui, "Liberation Sans", Arial, sans-serif'; ctx.textAlign = 'right';
        ctx.fillText(String(l.top), LABELS - 4, y + 7);
        ctx.textAlign = 'left';
      }
    }
    for (const g of groups) {
      if (g.y < 0) continue;
      const y = AXIS + g.y - state.scroll;
      if (y + HEADER < AXIS || y > view.height) continue;
      ctx.fillStyle = '#f0f3f5'; ctx.fillRect(0, y, view.width, HEADER);
      ctx.fillStyle = '#1d2329'; ctx.font = '600 11.5px system-ui, "Liberation Sans", Arial, sans-serif';
      ctx.fillText((state.folded.has(g.card) ? '▸ ' : '▾ ') + g.name + (state.folded.has(g.card) ? '  (' + g.lanes.length + ' lanes)' : ''), 8, y + HEADER / 2 + 0.5);
    }
    ctx.strokeStyle = '#d5dbdf'; ctx.beginPath(); ctx.moveTo(LABELS - 0.5, AXIS); ctx.lineTo(LABELS - 0.5, view.height); ctx.stroke();
    ctx.restore();
    if (total > view.height - AXIS) { // how far the rows are moved
      const h = view.height - AXIS, y = AXIS + state.scroll / total * h;
      ctx.fillStyle = 'rgba(0,0,0,.18)'; ctx.fillRect(view.width - 5, y, 4, h * h / total);
    }
  }

  // The overview: how busy the handlers and the DMA engine of the first card
  // that receives are, over the whole record, and which part is shown.
  function overview() {
    const w = over.width / view.dpr, h = over.height / view.dpr;
    const ox = (t) => LABELS + (t - whole0) / (whole1 - whole0) * (w - LABELS);
    if (!view.background) {
      const g = groups.find((x) => x.card >= 0) || groups[0];
      const cols = Math.max(1, Math.floor(w - LABELS)), shares = [];
      for (const [name, of, colour] of [['DMA engine', (l) => l.cls === DMA, '#d55e00'], ['handlers', (l) => l.cls === HANDLER && l.sub >= 7, '#0072b2']]) {
        const share = new Float64Array(cols);
        for (const l of g ? g.lanes.filter(of) : []) {
          let j = 0, b = 0;
          for (let x = 0; x < cols; x++) {
            const t1 = whole0 + (x + 1) * (whole1 - whole0) / cols;
            j = after(l.start, t1, j);
            const c = busy(l, t1, j);
            share[x] += (c - b) / ((whole1 - whole0) / cols);
            b = c;
          }
        }
        shares.push({name, share, colour});
      }
      view.background = {g, shares};
    }
    octx.fillStyle = '#fff'; octx.fillRect(0, 0, w, h);
    octx.font = '11px system-ui, "Liberation Sans", Arial, sans-serif'; octx.textBaseline = 'middle';
    view.background.shares.forEach((s, k) => {
      const base = k === 0 ? h / 2 - 1 : h - 2, high = h / 2 - 4;
      octx.fillStyle = '#5c6670';
      octx.fillText(s.name + ' busy', 16, base - high / 2);
      octx.fillStyle = s.colour; octx.globalAlpha = 0.75;
      s.share.forEach((f, x) => { if (f > 0) { const v = Math.min(1, f) * high; octx.fillRect(LABELS + x, base - v, 1, v); } });
      octx.globalAlpha = 1;
    });
    const a = ox(state.t0), b = Math.max(ox(state.t1), a + 3);
    octx.fillStyle = 'rgba(30,40,50,.10)';
    octx.fillRect(LABELS, 0, Math.max(0, a - LABELS), h); octx.fillRect(b, 0, Math.max(0, w - b), h);
    octx.strokeStyle = '#1d2329'; octx.lineWidth = 1; octx.strokeRect(a + 0.5, 0.5, b - a - 1, h - 1);
    view.ofOverview = (x) => whole0 + (x - LABELS) / (w - LABELS) * (whole1 - whole0);
  }

  // ---- Finding what lies under the pointer
  function laneAt(y) {
    if (y < AXIS) return null;
    for (const g of groups) for (const l of g.lanes) if (l.y >= 0 && y >= yOf(l) && y < yOf(l) + l.height) return l;
    return null;
  }
  function recordAt(x, y) {
    const l = laneAt(y);
    if (!l || x < LABELS) return {i: -1, more: 0};
    const t = tOf(x), per = (state.t1 - state.t0) / plotWidth(), slack = 3 * per;
    if (l.shape === 'level') {
      const j = after(l.start, t, 0) - 1;
      return {i: j >= 0 ? l.index[j] : -1, more: 0};
    }
    const hi = after(l.start, t + slack, 0);
    let best = -1, off = Infinity, more = 0;
    for (let j = hi - 1, steps = 0; j >= 0 && steps < 4000; j--, steps++) {
      if ((l.reach ? l.reach[j] : l.start[j]) < t - slack) break;
      if (l.end[j] < t - slack) continue;
      const away = t < l.start[j] ? l.start[j] - t : t > l.end[j] ? t - l.end[j] : 0;
      // Of several, the nearest; of those under the pointer, the shortest.
      const by = away > 0 ? 1e18 + away : l.end[j] - l.start[j];
      if (l.start[j] <= t + per / 2 && l.end[j] >= t - per / 2) more++;
      if (by < off) { off = by; best = l.index[j]; }
    }
    return {i: best, more: Math.max(0, more - 1)};
  }

  function hover(x, y) {
    const {i, more} = recordAt(x, y);
    if (i !== state.hover) { state.hover = i; redraw(); }
    if (i < 0) { tip.hidden = true; return; }
    tip.replaceChildren();
    const b = document.createElement('b');
    b.textContent = title(i);
    tip.append(b);
    for (const [k, v] of facts(i).filter(([k]) => k !== 'record')) {
      const div = document.createElement('div'), s = document.createElement('span');
      s.className = 'k'; s.textContent = k + ' ';
      div.append(s, v);
      tip.append(div);
    }
    if (more > 0) {
      const div = document.createElement('div');
      div.className = 'k'; div.textContent = more + ' more in this dot: zoom in';
      tip.append(div);
    }
    tip.hidden = false;
    const ox = canvas.offsetLeft + x + 14, oy = canvas.offsetTop + y + 14;
    const stage = $('stage');
    tip.style.left = Math.max(4, ox + tip.offsetWidth > stage.clientWidth - 4 ? ox - tip.offsetWidth - 28 : ox) + 'px';
    tip.style.top = Math.max(4, oy + tip.offsetHeight > stage.clientHeight - 4 ? oy - tip.offsetHeight - 28 : oy) + 'px';
  }

  // ---- Choosing
  function choose(i) {
    state.chosen = i;
    state.packet = i >= 0 ? r.packet[i] : 0;
    state.path = state.packet ? Array.from(packets.of(state.packet)).sort((a, b) => r.start[a] - r.start[b] || a - b) : [];
    $('packet').disabled = !state.packet;
    $('clear').disabled = i < 0;
    if (state.only) { state.only = state.packet ? ways() : null; layout(); }
    describe();
    redraw();
  }
  function describe() {
    detail.replaceChildren();
    const i = state.chosen;
    if (i < 0) return;
    const h = document.createElement('h3');
    h.textContent = title(i);
    const dl = document.createElement('dl');
    for (const [k, v] of facts(i)) {
      const div = document.createElement('div'), dt = document.createElement('dt'), dd = document.createElement('dd');
      dt.textContent = k; dd.textContent = v;
      div.append(dt, dd); dl.append(div);
    }
    detail.append(h, dl);
    if (!state.path.length) return;
    const p = document.createElement('h3');
    p.textContent = 'The way of packet ' + state.packet + ': ' + state.path.length + ' records';
    const ol = document.createElement('ol');
    for (const j of state.path) {
      const li = document.createElement('li');
      for (const text of [moment(r.start[j]), r.length[j] ? duration(r.length[j]) : '', cardName(r.card[j]), title(j) + (waited(j) ? ' — waited ' + waited(j) : '')]) {
        const s = document.createElement('span');
        s.textContent = text; li.append(s);
      }
      if (j === i) li.setAttribute('aria-current', 'true');
      li.addEventListener('click', () => { choose(j); reveal(j); });
      ol.append(li);
    }
    detail.append(p, ol);
  }
  // reveal brings a record into view, large enough to be seen.
  function reveal(i) {
    const l = laneOf(i);
    if (l) {
      if (l.y < 0) { state.folded.delete(l.card); if (state.only && !state.only.has(l)) state.only = null; layout(); }
      if (yOf(l) < AXIS) state.scroll = l.y;
      if (yOf(l) + l.height > view.height) state.scroll = l.y + l.height - (view.height - AXIS) + 4;
    }
    const mid = (r.start[i] + r.end[i]) / 2, span = Math.min(state.t1 - state.t0, Math.max(r.length[i] * 25, 8e7));
    show(mid - span / 2, mid + span / 2);
  }
  // ways are the lanes that the chosen packet's way touches.
  function ways() {
    const s = new Set(state.path.map(laneOf));
    const b = lanes.get((255 * CLASSES + BUS) * SUBS);
    if (b) s.add(b);
    return s;
  }
  function revealPacket() {
    if (!state.path.length) return;
    state.only = ways();
    state.scroll = 0;
    layout();
    let a = Infinity, b = -Infinity;
    for (const i of state.path) if (r.kind[i] !== kindOf.polls) { a = Math.min(a, r.start[i]); b = Math.max(b, r.end[i]); }
    const room = Math.max((b - a) * 0.06, 1e6);
    show(a - room, b + room);
  }

  // ---- Search
  const units = {ps: 1, ns: 1e3, us: 1e6, 'µs': 1e6, 'μs': 1e6, ms: 1e9, s: 1e12};
  function find(text) {
    let q = text.trim().toLowerCase();
    let m = q.match(/^@?\s*([\d.]+)\s*(ps|ns|us|µs|μs|ms|s)$/);
    if (m) return {time: parseFloat(m[1]) * units[m[2]] - head.base};
    m = q.match(/^(?:packet|p|#)?\s*(\d+)$/);
    if (m) {
      const all = Array.from(packets.of(+m[1]));
      return {hits: Int32Array.from(all.sort((a, b) => r.start[a] - r.start[b] || a - b)), packet: true};
    }
    let card = -1;
    m = q.match(/^(.*?)\s*(?:on\s+)?card\s+(\d+)$/);
    if (m) { q = m[1]; card = +m[2]; }
    const within = (names) => names.map((n) => n.toLowerCase().includes(q) ? 1 : 0);
    const ev = within(head.events), re = within(head.reasons), ve = within(head.verdicts), ki = within(head.kinds);
    const hits = [];
    if (q || card >= 0) for (let i = 0; i < r.n; i++) {
      if (card >= 0 && r.card[i] !== card) continue;
      const k = r.kind[i];
      if (!q || ki[k] || (k !== kindOf.level && k !== kindOf.wait && r.event[i] < ev.length && ev[r.event[i]]) ||
        ((k === kindOf.wait || k === kindOf.leave) && r.reason[i] && re[r.reason[i]]) || (k === kindOf.leave && ve[r.verdict[i]])) hits.push(i);
    }
    return {hits: Int32Array.from(hits)};
  }
  function search(forward) {
    const text = $('query').value;
    const again = text === state.query;
    if (!text.trim()) { state.query = null; $('hits').textContent = ''; return; }
    if (!again) {
      const f = find(text);
      state.query = text; state.hit = -1;
      if (f.time !== undefined) {
        const span = Math.min(state.t1 - state.t0, 2e8);
        state.query = null;
        $('hits').textContent = f.time < whole0 || f.time > whole1 ? 'not in this part' : '';
        show(f.time - span / 2, f.time + span / 2);
        return;
      }
      state.hits = f.hits;
      if (state.only) { state.only = null; layout(); }
      if (!state.hits.length) { $('hits').textContent = 'nothing'; choose(-1); return; }
      if (f.packet) {
        state.hit = 0; choose(state.hits[0]); revealPacket();
        $('hits').textContent = '1 of ' + state.hits.length;
        return;
      }
      // The first one from the middle of the view on.
      const mid = (state.t0 + state.t1) / 2;
      state.hit = state.hits.findIndex((i) => r.start[i] >= mid);
      if (state.hit < 0) state.hit = 0;
      if (!forward) state.hit = (state.hit + state.hits.length - 1) % state.hits.length;
    } else {
      if (!state.hits.length) return;
      state.hit = (state.hit + (forward ? 1 : state.hits.length - 1)) % state.hits.length;
    }
    const i = state.hits[state.hit];
    choose(i); reveal(i);
    $('hits').textContent = (state.hit + 1).toLocaleString('en') + ' of ' + state.hits.length.toLocaleString('en');
  }

  // ---- Hands
  const local = (e, c) => { const b = c.getBoundingClientRect(); return [e.clientX - b.left, e.clientY - b.top]; };
  canvas.addEventListener('wheel', (e) => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    let dx = e.deltaX * unit, dy = e.deltaY * unit;
    if (e.shiftKey && !dx) { dx = dy; dy = 0; }
    if (Math.abs(dx) > Math.abs(dy)) move(dx, 0);
    else zoom(Math.exp(Math.max(-1, Math.min(1, dy / 240))), local(e, canvas)[0]);
  }, {passive: false});
  let drag = null;
  canvas.addEventListener('pointerdown', (e) => {
    if (e.button !== 0) return;
    canvas.setPointerCapture(e.pointerId);
    drag = {x: e.clientX, y: e.clientY, moved: false};
  });
  canvas.addEventListener('pointermove', (e) => {
    if (drag) {
      const dx = drag.x - e.clientX, dy = drag.y - e.clientY;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag.moved = true; drag.x = e.clientX; drag.y = e.clientY;
      tip.hidden = true;
      canvas.style.cursor = 'grabbing';
      move(dx, dy);
      return;
    }
    const [x, y] = local(e, canvas);
    hover(x, y);
    canvas.style.cursor = state.hover >= 0 || groupAt(x, y) ? 'pointer' : 'default';
  });
  const groupAt = (x, y) => groups.find((g) => g.y >= 0 && y >= AXIS && y >= AXIS + g.y - state.scroll && y < AXIS + g.y - state.scroll + HEADER);
  canvas.addEventListener('pointerup', (e) => {
    const was = drag;
    drag = null;
    canvas.style.cursor = 'default';
    if (!was || was.moved) return;
    canvas.focus({preventScroll: true});
    const [x, y] = local(e, canvas), g = groupAt(x, y);
    if (g) {
      if (!state.folded.delete(g.card)) state.folded.add(g.card);
      layout(); redraw();
      return;
    }
    choose(recordAt(x, y).i);
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; if (state.hover >= 0) { state.hover = -1; redraw(); } });
  canvas.addEventListener('dblclick', (e) => { const {i} = recordAt(...local(e, canvas)); if (i >= 0) reveal(i); });
  let seek = false;
  const toOverview = (e) => {
    const t = view.ofOverview(local(e, over)[0]), half = (state.t1 - state.t0) / 2;
    show(t - half, t + half);
  };
  over.addEventListener('pointerdown', (e) => { over.setPointerCapture(e.pointerId); seek = true; toOverview(e); });
  over.addEventListener('pointermove', (e) => { if (seek) toOverview(e); });
  over.addEventListener('pointerup', () => { seek = false; });
  over.addEventListener('wheel', (e) => { e.preventDefault(); zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 240)))); }, {passive: false});
  canvas.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const far = plotWidth() / 6;
    const acts = {
      a: () => move(-far, 0), arrowleft: () => move(-far, 0), d: () => move(far, 0), arrowright: () => move(far, 0),
      w: () => move(0, -60), arrowup: () => move(0, -60), s: () => move(0, 60), arrowdown: () => move(0, 60),
      '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), '0': () => show(whole0, whole1), p: revealPacket, escape: () => choose(-1),
    };
    const act = acts[e.key.toLowerCase()];
    if (act) { e.preventDefault(); act(); }
  });
  $('find').addEventListener('submit', (e) => { e.preventDefault(); search(true); });
  $('query').addEventListener('keydown', (e) => { if (e.key === 'Enter' && e.shiftKey) { e.preventDefault(); search(false); } });
  $('prev').addEventListener('click', () => search(false));
  $('in').addEventListener('click', () => zoom(0.5));
  $('out').addEventListener('click', () => zoom(2));
  $('fit').addEventListener('click', () => show(whole0, whole1));
  $('packet').addEventListener('click', revealPacket);
  $('clear').addEventListener('click', () => choose(-1));
  new ResizeObserver(resize).observe(canvas);
  resize();
  show(whole0, whole1);

  // For scripts: what is shown, and where.
  return {
    records: r, lanes: Array.from(lanes.values()), show, choose, draw,
    view: () => ({t0: state.t0, t1: state.t1, whole0, whole1, scroll: state.scroll, frame: view.frame, frames: view.frames}),
    chosen: () => state.chosen, packet: () => state.packet, path: () => Array.from(state.path), title, facts,
    at: (i) => { // the middle of a record in the window
      const p = place(i), b = canvas.getBoundingClientRect();
      return p && {x: b.left + (p.x0 + p.x1) / 2, y: b.top + p.mid};
    },
  };
}

window.spinesim = {
  ready: unpack().then((r) => {
    Object.assign(window.spinesim, start(r));
    $('wait').hidden = true;
    return true;
  }).catch((e) => {
    $('wait').textContent = 'the events cannot be shown: ' + e.message + ' (a browser of 2023 or later is needed)';
    throw e;
  }),
};
})();
