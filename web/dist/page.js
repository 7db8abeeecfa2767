"use strict";(()=>{var j=class{constructor(e,t){this.places=e;this.bytes=t}made=new Map;get(e){let t=this.made.get(e);if(!t){let s=this.places[e];
t=s?He(this.bytes,s):new Float64Array(0),this.made.set(e,t)}return t}};function He(i,[e,,t,s]){let n=new Float64Array(t),
r=e,o=0;for(let a=0;a<t;a++){let c=0,u=1,m;do m=i[r++],c+=(m&127)*u,u*=128;while(m>127);s===1&&(o+=c%2===0?c/2:-(c+1)/2,
c=o),n[a]=c}return n}function Ne(i){let e=atob(i),t=new Uint8Array(e.length);for(let s=0;s<t.length;s++)t[s]=e.charCodeAt(
s);return t}function De(i){let e=new DataView(i.buffer,i.byteOffset).getUint32(0,!0);return{json:JSON.parse(new TextDecoder().
decode(i.subarray(4,4+e))),rest:i.subarray(4+e)}}async function me(i){let e=new Blob([Ne(i)]).stream(),t=new Response(e.
pipeThrough(new DecompressionStream("deflate")));return De(new Uint8Array(await t.arrayBuffer()))}function ne(i,e){e==null||e===!1||(Array.isArray(e)?e.forEach(t=>ne(i,t)):i.append(e instanceof Node?e:String(e)))}function h(i,e={},...t){
let[s,...n]=i.split("."),r=document.createElement(s);n.length&&(r.className=n.join(" "));for(let[o,a]of Object.entries(e))
typeof a=="function"?r.addEventListener(o,a):a===!0?r.setAttribute(o,""):a!==void 0&&a!==!1&&r.setAttribute(o,String(a));
return ne(r,t),r}function w(i,...e){i.replaceChildren(),ne(i,e)}function S(i,e,t=[]){let s=n=>t.includes(n)?{class:"n"}:
{};return h("div.scroll",{},h("table",{},h("thead",{},h("tr",{},i.map((n,r)=>h("th",{scope:"col",...s(r)},n)))),h("tbody",
{},e.map(n=>h("tr",{},n.map((r,o)=>h("td",s(o),r)))))))}function D(i,e){let t=h("i");return t.style.width=`${Math.max(0,
Math.min(1,i))*100}%`,t.style.background=e,h("span.bar",{"aria-hidden":"true"},t)}function F(i){let e=h("i.swatch",{"ari\
a-hidden":"true"});return e.style.background=i,e}function _(i,e){let t=window.devicePixelRatio||1,s=i.parentElement.clientWidth,
n=Math.max(1,Math.round(s*t)),r=Math.max(1,Math.round(e*t));(i.width!==n||i.height!==r)&&(i.width=n,i.height=r,i.style.width=
`${s}px`,i.style.height=`${e}px`);let o=i.getContext("2d");return o.setTransform(t,0,0,t,0,0),o.clearRect(0,0,s,e),o}function T(i){
let e=!1;return()=>{e||(e=!0,requestAnimationFrame(()=>{e=!1,i()}))}}function y(i){return getComputedStyle(document.documentElement).
getPropertyValue(i).trim()}var V=[["parameter","#3f9b5b"],["buffer","#8c6d46"],["optimizer_state","#dba520"],["gradient","#3f74c4"],["input","#27a5\
a0"],["activation","#d6604d"],["kv_cache","#4f8f8b"],["autograd_detail","#7fb2e5"],["temporary","#9970ab"],["embedding",
"#2a6459"],["attention","#4a3fc0"],["mlp","#f7a88f"],["normalization","#d9a3ee"],["lora","#c51b7d"],["conv","#7a2f6b"],[
"expert","#8a3a1c"],["router","#f0d37a"],["(cuBLAS workspace)","#b47b80"],["(cuBLASLt workspace)","#c9b08a"],["head","#7\
fc06a"],["model_load","#3f9b5b"],["data","#27a5a0"],["wrap","#7fb2e5"],["optimizer_setup","#7d5a1a"],["privacy_setup","#\
c51b7d"],["forward","#d6604d"],["backward","#3f74c4"],["privacy","#f7a88f"],["optimizer","#dba520"],["eval","#9970ab"],[
"torch","#ee7a32"],["jax","#3f74c4"],["cupy","#9970ab"],["cublas","#27a5a0"],["cudnn","#7fb2e5"],["nccl","#3f9b5b"],["us\
er","#c51b7d"],["other","#9aa0a6"],["unknown","#c4c7cc"]],L=["#4393c3","#e08214","#33a05c","#d6604d","#9970ab","#878787",
"#35978f","#c51b7d","#b8860b","#6a51a3"];var We=new Map(V),Ie=new Map(V.map(([i],e)=>[i,e]));function x(i){let e=We.get(i??"unknown");if(e)return e;let t=0;for(let s=0;s<
i.length;s++)t=Math.imul(31,t)+i.charCodeAt(s)>>>0;return L[t%L.length]}function de(i){return Ie.get(i??"unknown")??V.length}var R=["category","module","component","stage"],X=class{report;process;drawn;blocks;peakRows;columns;levels=new Map;frameStarts;constructor(e,t){
this.report=e.report,this.process=e.report.processes[e.report.chosen],this.drawn=e.drawn,this.columns=new j(e.drawn.columns,
t),this.blocks=this.readBlocks(),this.peakRows=this.readPeak();let s=this.column("stacks.n");this.frameStarts=new Float64Array(
s.length+1);for(let n=0;n<s.length;n++)this.frameStarts[n+1]=this.frameStarts[n]+s[n]}get devices(){return this.drawn.timeline.
devices}get start(){return 0}get end(){return Math.max(1,this.drawn.timeline.end_ns)}get offset(){return this.drawn.timeline.
offset_ns}column(e){return this.columns.get(e)}text(e){return e>0?this.drawn.strings[e-1]:null}keysOf(e){return{category:this.
column(`${e}.category`),module:this.column(`${e}.module`),component:this.column(`${e}.component`),stage:this.column(`${e}\
.stage`)}}readBlocks(){let e=this.column("blocks.alloc"),t=this.column("blocks.life"),s=new Float64Array(e.length);for(let n=0;n<
s.length;n++)s[n]=t[n]>0?e[n]+t[n]-1:1/0;return{n:e.length,alloc:e,free:s,size:this.column("blocks.size"),address:this.column(
"blocks.address"),step:this.column("blocks.step"),stack:this.column("blocks.stack"),tensor:this.column("blocks.tensor"),
device:this.column("blocks.device"),keys:this.keysOf("blocks")}}readPeak(){let e=this.column("peak.bytes");return{n:e.length,
bytes:e,blocks:this.column("peak.blocks"),stack:this.column("peak.stack"),tensor:this.column("peak.tensor"),keys:this.keysOf(
"peak")}}frames(e){if(!(e>0))return[];let t=[],s=this.column("stacks.frames");for(let n=this.frameStarts[e-1];n<this.frameStarts[e];n++)
t.push(this.frame(s[n]-1));return t}frame(e){return{file:this.text(this.column("frames.file")[e]),function:this.text(this.
column("frames.function")[e]),line:this.column("frames.line")[e],kind:this.column("frames.kind")[e],source:this.text(this.
column("frames.source")[e])}}hasAll(e,t){let{window_start_ns:s,window_end_ns:n}=this.drawn.blocks;return s!==null&&n!==null&&
this.drawn.timeline.known_ns<=e&&s<=Math.max(0,e)&&n>=Math.min(t,this.end)}levelsOf(e){let t=this.levels.get(e);if(!t){for(t=
[this.finest(e)];t[t.length-1].n>1;)t.push(Ke(t[t.length-1]));this.levels.set(e,t)}return t}finest(e){let t=this.drawn.timeline.
bins;return{n:t,width:this.end/t,best:Int32Array.from({length:t},(s,n)=>n),max:this.column(`bins.${e}.max`),min:this.column(
`bins.${e}.min`),reserved:this.column(`bins.${e}.reserved`),used:this.column(`bins.${e}.used`)}}bins(e,t,s,n,r){let o=this.
levelsOf(e),a=(s-t)/Math.max(1,n),c=o[0];for(let u of o)u.width<=a*1.01&&(c=u);return c===o[0]&&c.width>a&&this.hasAll(t,
s)?this.exactBins(e,t,s,n,r):this.cut(e,c,t,s,r)}layersOf(e,t){return this.drawn.timeline.layers.filter(n=>n.device===e&&
n.by===t).map(n=>({key:{key:n.key,others:n.others},column:this.column(n.column)})).sort((n,r)=>pe(n.key,t)-pe(r.key,t))}cut(e,t,s,n,r){
let o=$(Math.floor(s/t.width),0,t.n-1),a=$(Math.ceil(n/t.width),o+1,t.n),c=this.layersOf(e,r),u=this.column(`bins.${e}.a\
t`),m=a-o,d=p=>{let v=new Float64Array(m);for(let k=0;k<m;k++)v[k]=p[t.best[o+k]];return v};return{start:o*t.width,width:t.
width,n:m,exact:!1,max:t.max.subarray(o,a),min:t.min.subarray(o,a),at:d(u),reserved:t.reserved.subarray(o,a),used:t.used.
subarray(o,a),keys:c.map(p=>p.key),layers:c.map(p=>d(p.column))}}exactBins(e,t,s,n,r){let o=this.layersOf(e,r),a=o.map(v=>v.
key.key),c=this.cut(e,this.levelsOf(e)[0],t,s,r),u=Math.max(1,Math.round(n)),m=(s-t)/u,d=new ie(this,e,r,a,o.findIndex(v=>v.
key.others>0)),p={start:t,width:m,n:u,exact:!0,max:new Float64Array(u),min:new Float64Array(u),at:new Float64Array(u),reserved:new Float64Array(
u),used:new Float64Array(u),keys:o.map(v=>v.key),layers:o.map(()=>new Float64Array(u))};d.fill(p);for(let v=0;v<u;v++){let k=$(
Math.floor((t+v*m-c.start)/c.width),0,c.n-1);p.reserved[v]=c.reserved[k],p.used[v]=c.used[k]}return p}};function Ke(i){let e=Math.
ceil(i.n/2),t={n:e,width:i.width*2,max:new Float64Array(e),min:new Float64Array(e),best:new Int32Array(e),reserved:new Float64Array(
e),used:new Float64Array(e)};for(let s=0;s<e;s++){let n=2*s,r=Math.min(2*s+1,i.n-1),o=i.max[r]>i.max[n]?r:n;t.max[s]=i.max[o],
t.best[s]=i.best[o],t.min[s]=Math.min(i.min[n],i.min[r]),t.reserved[s]=Math.max(i.reserved[n],i.reserved[r]),t.used[s]=Math.
max(i.used[n],i.used[r])}return t}function pe(i,e){return i.others>0?2e3:e==="module"?0:de(i.key)}var ie=class{layer;changes=[];constructor(e,t,s,n,r){
let o=e.blocks,a=o.keys[s],c=r<0?0:r,u=new Map(n.map((m,d)=>[m,d]));this.layer=new Int16Array(o.n).fill(-1);for(let m=0;m<
o.n;m++)o.device[m]===t&&(this.layer[m]=u.get(e.text(a[m]))??c);this.source=e}source;gather(e,t,s){let n=this.source.blocks,
r=0;for(let o=0;o<n.n&&n.alloc[o]<=t;o++)this.layer[o]<0||n.free[o]<e||(n.alloc[o]<e?(s[this.layer[o]]+=n.size[o],r+=n.size[o]):
this.changes.push({ns:n.alloc[o],block:o,isFree:!1}),n.free[o]<=t&&this.changes.push({ns:n.free[o],block:o,isFree:!0}));
return this.changes.sort((o,a)=>o.ns-a.ns||Number(a.isFree)-Number(o.isFree)),r}fill(e){let t=this.source.blocks,s=new Float64Array(
e.layers.length),n=e.start+e.n*e.width,r=this.gather(e.start,n,s),o=0;for(let a=0;a<e.n;a++){let c=a+1===e.n?1/0:e.start+
(a+1)*e.width;for(e.max[a]=e.min[a]=r,e.at[a]=e.start+a*e.width,s.forEach((u,m)=>{e.layers[m][a]=u});o<this.changes.length&&
this.changes[o].ns<c;o++){let u=this.changes[o],m=u.isFree?-t.size[u.block]:t.size[u.block];if(r+=m,s[this.layer[u.block]]+=
m,r<e.min[a]&&(e.min[a]=r),!(r<=e.max[a])){e.max[a]=r,e.at[a]=u.ns;for(let d=0;d<s.length;d++)e.layers[d][a]=s[d]}}}}};function Y(i,e){
let t=i.report.explain?.ooms.find(n=>n.device===e)?.evidence.limit;if(typeof t=="number")return t;let s=i.process;return s.
ooms.find(n=>n.device===e&&n.capacity)?.capacity??s.accounting.find(n=>n.device===e&&n.total)?.total??null}function $(i,e,t){
return i<e?e:i>t?t:i}var fe=["B","KiB","MiB","GiB","TiB","PiB"];function f(i){if(i==null)return"-";let e=0,t=Math.abs(i);for(;t>=1023.95&&e<fe.
length-1;)t/=1024,e++;let s=e===0?0:e>=3?2:1;return`${i<0?"-":""}${t.toFixed(s)} ${fe[e]}`}function G(i){return i==null?
"-":i<1024?`${i} B`:`${f(i)} (${g(i)} B)`}function g(i){return i==null?"-":Math.round(i).toLocaleString("en-US")}function E(i,e){
if(!(e>0))return"-";let t=100*i/e;return t>0&&t<1?"<1 %":`${Math.round(t)} %`}function B(i){if(i==null)return"-";if(i<1e3)
return`${i.toFixed(0)} ns`;if(i<1e6)return`${(i/1e3).toFixed(2)} \xB5s`;if(i<1e9)return`${(i/1e6).toFixed(2)} ms`;if(i<12e10)
return`${(i/1e9).toFixed(2)} s`;let e=Math.round(i/1e9),t=Math.floor(e/60);return t<60?`${t} min ${e%60} s`:`${Math.floor(
t/60)} h ${t%60} min`}function A(i,e,t=i){let[s,n]=t>=1e9?["s",1e9]:t>=1e6?["ms",1e6]:t>=1e3?["\xB5s",1e3]:["ns",1],r=Math.
max(0,Math.min(9,Math.ceil(-Math.log10(Math.max(1,e)/n)-1e-9)));return`${(i/n).toFixed(r)} ${s}`}function O(i){return A(
i,i>=1e9?1e6:i>=1e6?1e4:10)}function W(i,e){let t=i/Math.max(1,e),s=10**Math.floor(Math.log10(t)),n=t/s;return s*(n<=1?1:
n<=2?2:n<=5?5:10)}function Z(i,e){return 2**Math.max(0,Math.ceil(Math.log2(Math.max(1,i/Math.max(1,e)))))}function be(i,e=2){
let t=i.split("/");return t.length<=e?i:t.slice(-e).join("/")}function P(i){return i.find(e=>e.kind===0)??i.find(e=>e.kind===1)??i[0]??null}function H(i){return i?i.file?`${i.file}${i.
line?`:${i.line}`:""}${i.function?` ${i.function}`:""}`:i.function??"?":"?"}function ve(i,e,t){let s=i.blocks,n=[];for(let o=0;o<
s.n&&s.alloc[o]<=t;o++)s.free[o]>t&&s.device[o]===e&&n.push(o);let r=o=>Float64Array.from(n,a=>o[a]);return{n:n.length,bytes:r(
s.size),blocks:new Float64Array(n.length).fill(1),stack:r(s.stack),tensor:r(s.tensor),keys:{category:r(s.keys.category),
module:r(s.keys.module),component:r(s.keys.component),stage:r(s.keys.stage)}}}function ye(i,e,t,s){let n=new Map,r=new Map,
o=a=>{let c=r.get(a);return c===void 0&&(c=a>0?H(P(i.frames(a))):null,r.set(a,c)),c};for(let a=0;a<e.n;a++){if(s&&!s(a))
continue;let c=t==="line"?o(e.stack[a]):i.text(t==="tensor"?e.tensor[a]:e.keys[t][a]),u=n.get(c);u||n.set(c,u={key:c,bytes:0,
blocks:0,stack:e.stack[a]}),u.bytes+=e.bytes[a],u.blocks+=e.blocks[a]}return[...n.values()].sort((a,c)=>c.bytes-a.bytes||
qe(a.key,c.key))}function qe(i,e){return i===null||e===null?+(i===null)-+(e===null):i<e?-1:i>e?1:0}var z=class{constructor(e,t){
this.source=e;this.query=t.toLowerCase()}texts=new Map;stacks=new Map;query;has(e){return e!==null&&e.toLowerCase().includes(
this.query)}text(e){let t=this.texts.get(e);return t===void 0&&this.texts.set(e,t=this.has(this.source.text(e))),t}stack(e){
let t=this.stacks.get(e);return t===void 0&&(t=this.source.frames(e).some(s=>this.has(s.file)||this.has(s.function)||this.
has(H(s))),this.stacks.set(e,t)),t}row(e,t){return this.text(e.tensor[t])||this.text(e.keys.module[t])||this.stack(e.stack[t])}};var Ue={language:"\u4E2D\u6587",theme:"Theme",themeAuto:"System",themeLight:"Light",themeDark:"Dark",search:"Find a file\
, function, module or tensor",skip:"Skip to the contents",overview:"Overview",timeline:"Memory over time",peak:"What was\
 allocated",ooms:"Out of memory",leaks:"Leaks",map:"Segments",steps:"Steps",ranks:"Ranks",device:"Device",settings:"Allo\
cator settings",marks:"Marks",quality:"What is left out",peakFigure:"Peak allocated",reservedFigure:"Reserved then",limitFigure:"\
Limit",stepsFigure:"Steps",eventsFigure:"Events",inStep:"in step {0}",beforeSteps:"before the first step",at:"at {0}",perStep:"\
{0} a step",process:"process",rank:"rank {0}",pid:"PID {0}",started:"started {0} UTC",by:"Colour by",category:"Category",
module:"Module",component:"Component",stage:"Stage",blocks:"Single blocks",line:"Line",tensor:"Tensor",deviceLabel:"Devi\
ce",all:"Whole run",toPeak:"Peak",zoomIn:"Zoom in",zoomOut:"Zoom out",left:"Earlier",right:"Later",reserved:"reserved",used:"\
device in use",limit:"limit",least:"least in a pixel",allocated:"allocated",others:"{0} others",unknown:"not known",smaller:"\
smaller blocks",hint:"Wheel or + and \u2212 zoom, drag or \u2190 \u2192 moves, double click or 0 shows everything, click looks at a mom\
ent.",exact:"exact: every block of this window is here",binned:"a column is the highest moment of {0}",moment:"At {0}",peakMoment:"\
At the peak, {0}",backToPeak:"Back to the peak",composition:"Sums by",size:"Size",share:"Share",blocksHead:"Blocks",name:"\
Name",place:"Line",icicle:"Call tree",icicleStack:"By Python stack",icicleModule:"By module",allFrames:"All frames",ownFrames:"\
Your code only",icicleHint:"Width is bytes. Click a box to zoom, Esc goes back.",total:"total",shown:"{0} of {1} shown",
lifetime:"Lived",allocatedAt:"Allocated",stillAlive:"alive at the end",address:"Address",step:"Step",stack:"Stack",noStack:"\
no stack was recorded",block:"Block",cause_demand:"The training needs more memory than there is.",cause_fragmentation:"E\
nough memory was cached, but in pieces that were too small.",cause_leak:"Memory that grew from step to step left no room\
.",cause_outlier:"This step needed far more than those before it.",cause_other_process:"Another process had memory of th\
e device.",cause_settings:"A setting keeps torch from using the memory that is there.",oomLine:"{0} were asked for in st\
ep {1}; {2} were allocated, {3} reserved.",request:"Request",evidence:"Evidence",fixes:"What helps",saves:"Saves",proof:"\
Proof",proof_replay:"replayed",proof_measured:"measured",proof_estimate:"estimated",what:"What",grows:"Grows by",since:"\
since step {0}",confidence:"Confidence",keptBy:"Kept by",noLeak:"No leak was found.",mapLine:"{0} reserved on {1}, {2} o\
f it allocated; the largest free piece has {3}.",mapHint:"Segments of the driver, one after the other, to scale. What is\
 pale in them is cached memory.",gap:"free",segment:"Segment",smallPool:"small pool",largePool:"large pool",stepPeak:"Pe\
ak",stepEnd:"Kept after it",stepBytes:"Allocated in it",stepTime:"Time",stepAllocations:"Allocations",mean:"{0} on avera\
ge",largestSteps:"Steps with the largest peaks",rankPeak:"Peak",rankHost:"Host",rankEnd:"End",rankCurves:"Peak of each r\
ank's steps over time",conf:"Setting",result:"Result",runsOut:"runs out of memory too",fits:"fits",needs:"Reserves",defaults:"\
torch's defaults",sooner:"runs out earlier",owner:"Owner",context:"CUDA context",otherProcesses:"other processes",unexplained:"\
not explained",free:"free",table:"Values as a table",time:"Time",results:"{0} at the peak match",noMatch:"Nothing matche\
s.",leftBlocks:"Of {0} blocks, {1} are drawn one by one: all that lived between {2} and {3}, and the largest elsewhere.",
leftBlocksOnly:"Of {0} blocks, the {1} largest are drawn one by one.",leftPeak:"Of {0} rows at the peak, the {1} largest\
 are here; they have {2} of {3}.",leftSteps:"Of {0} steps, {1} are here: the first, the last and those with the largest \
peaks.",leftMap:"Of {0} segments, {1} are here.",leftBins:"Time is cut into {0} parts of {1}.",leftRanks:"Details are of\
 {0}; of the other processes, peaks and steps.",leftNothing:"All {0} blocks of the run are here.",givenUp:"Detail before\
 {0} was given up while recording (--max-size).",full:"All detail: {0}",inSeconds:"Runs out of memory in about {0}.",inSteps:"\
Runs out of memory in about {0} steps.",next:"Next:",madeBy:"Made by tidemark {0}. This file needs no network and sends \
nothing.",failed:"This page cannot be shown: {0}",old:"the browser is too old; any browser of 2023 or later will do"},je={
language:"English",theme:"\u4E3B\u9898",themeAuto:"\u8DDF\u968F\u7CFB\u7EDF",themeLight:"\u6D45\u8272",themeDark:"\u6DF1\u8272",
search:"\u67E5\u627E\u6587\u4EF6\u3001\u51FD\u6570\u3001\u6A21\u5757\u6216\u5F20\u91CF",skip:"\u8DF3\u5230\u6B63\u6587",
overview:"\u6982\u89C8",timeline:"\u663E\u5B58\u968F\u65F6\u95F4\u53D8\u5316",peak:"\u5DF2\u5206\u914D\u7684\u5185\u5BB9",
ooms:"\u663E\u5B58\u4E0D\u8DB3 (OOM)",leaks:"\u6CC4\u6F0F",map:"\u6BB5",steps:"\u6B65",ranks:"\u5404 rank",device:"\u8BBE\u5907",
settings:"\u5206\u914D\u5668\u8BBE\u7F6E",marks:"\u6807\u8BB0",quality:"\u672A\u5305\u542B\u7684\u5185\u5BB9",peakFigure:"\
\u5DF2\u5206\u914D\u5CF0\u503C",reservedFigure:"\u5F53\u65F6\u5DF2\u9884\u7559",limitFigure:"\u4E0A\u9650",stepsFigure:"\
\u6B65\u6570",eventsFigure:"\u4E8B\u4EF6",inStep:"\u7B2C {0} \u6B65",beforeSteps:"\u7B2C\u4E00\u6B65\u4E4B\u524D",at:"{0\
} \u65F6",perStep:"\u6BCF\u6B65 {0}",process:"\u8FDB\u7A0B",rank:"rank {0}",pid:"PID {0}",started:"\u5F00\u59CB\u4E8E {0} UTC",
by:"\u7740\u8272\u4F9D\u636E",category:"\u7C7B\u522B",module:"\u6A21\u5757",component:"\u7EC4\u4EF6",stage:"\u9636\u6BB5",
blocks:"\u5355\u4E2A\u5757",line:"\u4EE3\u7801\u884C",tensor:"\u5F20\u91CF",deviceLabel:"\u8BBE\u5907",all:"\u6574\u4E2A\u8FD0\u884C",
toPeak:"\u5CF0\u503C",zoomIn:"\u653E\u5927",zoomOut:"\u7F29\u5C0F",left:"\u5411\u524D",right:"\u5411\u540E",reserved:"\u5DF2\u9884\
\u7559",used:"\u8BBE\u5907\u5360\u7528",limit:"\u4E0A\u9650",least:"\u50CF\u7D20\u5185\u6700\u5C0F\u503C",allocated:"\u5DF2\u5206\u914D",
others:"\u5176\u4ED6 {0} \u9879",unknown:"\u672A\u77E5",smaller:"\u8F83\u5C0F\u7684\u5757",hint:"\u6EDA\u8F6E\u6216 + \u2212 \u7F29\u653E\uFF0C\u62D6\u52A8\u6216 \u2190 \u2192 \u79FB\u52A8\uFF0C\u53CC\
\u51FB\u6216 0 \u663E\u793A\u5168\u90E8\uFF0C\u5355\u51FB\u67E5\u770B\u67D0\u4E00\u65F6\u523B\u3002",exact:"\u7CBE\u786E\uFF1A\u6B64\u7A97\u53E3\u5185\u7684\u6BCF\u4E2A\u5757\u90FD\
\u5728\u6587\u4EF6\u4E2D",binned:"\u6BCF\u5217\u662F {0} \u5185\u7684\u6700\u9AD8\u65F6\u523B",moment:"{0} \u65F6",peakMoment:"\
\u5CF0\u503C\u65F6\u523B {0}",backToPeak:"\u56DE\u5230\u5CF0\u503C",composition:"\u6C47\u603B\u4F9D\u636E",size:"\u5927\u5C0F",
share:"\u5360\u6BD4",blocksHead:"\u5757\u6570",name:"\u540D\u79F0",place:"\u4EE3\u7801\u884C",icicle:"\u8C03\u7528\u6811",
icicleStack:"\u6309 Python \u8C03\u7528\u6808",icicleModule:"\u6309\u6A21\u5757",allFrames:"\u5168\u90E8\u5E27",ownFrames:"\
\u4EC5\u81EA\u5DF1\u7684\u4EE3\u7801",icicleHint:"\u5BBD\u5EA6\u8868\u793A\u5B57\u8282\u6570\u3002\u5355\u51FB\u65B9\u5757\u653E\u5927\uFF0CEsc \u8FD4\u56DE\u3002",
total:"\u5408\u8BA1",shown:"\u663E\u793A {0} / {1}",lifetime:"\u5B58\u6D3B",allocatedAt:"\u5206\u914D\u4E8E",stillAlive:"\
\u7ED3\u675F\u65F6\u4ECD\u5B58\u6D3B",address:"\u5730\u5740",step:"\u6B65",stack:"\u8C03\u7528\u6808",noStack:"\u672A\u8BB0\u5F55\u8C03\u7528\u6808",
block:"\u5757",cause_demand:"\u8BAD\u7EC3\u9700\u8981\u7684\u663E\u5B58\u8D85\u8FC7\u4E86\u53EF\u7528\u663E\u5B58\u3002",
cause_fragmentation:"\u7F13\u5B58\u7684\u663E\u5B58\u8DB3\u591F\uFF0C\u4F46\u90FD\u662F\u8FC7\u5C0F\u7684\u788E\u7247\u3002",
cause_leak:"\u9010\u6B65\u589E\u957F\u7684\u663E\u5B58\u8017\u5C3D\u4E86\u7A7A\u95F4\u3002",cause_outlier:"\u8FD9\u4E00\u6B65\u9700\u8981\u7684\u663E\u5B58\u8FDC\u591A\u4E8E\u4E4B\u524D\
\u5404\u6B65\u3002",cause_other_process:"\u53E6\u4E00\u4E2A\u8FDB\u7A0B\u5360\u7528\u4E86\u8BE5\u8BBE\u5907\u7684\u663E\u5B58\u3002",
cause_settings:"\u67D0\u9879\u8BBE\u7F6E\u4F7F torch \u65E0\u6CD5\u4F7F\u7528\u73B0\u6709\u7684\u663E\u5B58\u3002",oomLine:"\
\u7B2C {1} \u6B65\u8BF7\u6C42 {0}\uFF1B\u5F53\u65F6\u5DF2\u5206\u914D {2}\uFF0C\u5DF2\u9884\u7559 {3}\u3002",request:"\u8BF7\u6C42",
evidence:"\u8BC1\u636E",fixes:"\u89E3\u51B3\u529E\u6CD5",saves:"\u8282\u7701",proof:"\u4F9D\u636E",proof_replay:"\u91CD\u653E\u5F97\u51FA",
proof_measured:"\u5B9E\u6D4B",proof_estimate:"\u4F30\u8BA1",what:"\u529E\u6CD5",grows:"\u589E\u957F",since:"\u81EA\u7B2C {0} \u6B65\u8D77",
confidence:"\u7F6E\u4FE1\u5EA6",keptBy:"\u6301\u6709\u8005",noLeak:"\u6CA1\u6709\u53D1\u73B0\u6CC4\u6F0F\u3002",mapLine:"\
{1} \u4E0A\u9884\u7559 {0}\uFF0C\u5176\u4E2D\u5DF2\u5206\u914D {2}\uFF1B\u6700\u5927\u7684\u7A7A\u95F2\u5757\u4E3A {3}\u3002",
mapHint:"\u9A71\u52A8\u7684\u5404\u4E2A\u6BB5\u4F9D\u6B21\u6309\u6BD4\u4F8B\u6392\u5217\uFF1B\u6D45\u8272\u90E8\u5206\u662F\u7F13\u5B58\u7684\u663E\u5B58\u3002",
gap:"\u7A7A\u95F2",segment:"\u6BB5",smallPool:"\u5C0F\u5757\u6C60",largePool:"\u5927\u5757\u6C60",stepPeak:"\u5CF0\u503C",
stepEnd:"\u4E4B\u540E\u4FDD\u7559",stepBytes:"\u671F\u95F4\u5206\u914D",stepTime:"\u65F6\u95F4",stepAllocations:"\u5206\u914D\u6B21\u6570",
mean:"\u5E73\u5747 {0}",largestSteps:"\u5CF0\u503C\u6700\u5927\u7684\u6B65",rankPeak:"\u5CF0\u503C",rankHost:"\u4E3B\u673A",
rankEnd:"\u7ED3\u675F",rankCurves:"\u5404 rank \u6BCF\u6B65\u5CF0\u503C\u968F\u65F6\u95F4\u53D8\u5316",conf:"\u8BBE\u7F6E",
result:"\u7ED3\u679C",runsOut:"\u540C\u6837\u663E\u5B58\u4E0D\u8DB3",fits:"\u53EF\u4EE5\u5BB9\u7EB3",needs:"\u9884\u7559",
defaults:"torch \u9ED8\u8BA4\u8BBE\u7F6E",sooner:"\u66F4\u65E9\u663E\u5B58\u4E0D\u8DB3",owner:"\u6240\u6709\u8005",context:"\
CUDA \u4E0A\u4E0B\u6587",otherProcesses:"\u5176\u4ED6\u8FDB\u7A0B",unexplained:"\u65E0\u6CD5\u89E3\u91CA",free:"\u7A7A\u95F2",
table:"\u4EE5\u8868\u683C\u663E\u793A\u6570\u503C",time:"\u65F6\u95F4",results:"\u5CF0\u503C\u65F6\u5339\u914D {0}",noMatch:"\
\u6CA1\u6709\u5339\u914D\u9879\u3002",leftBlocks:"\u5171 {0} \u4E2A\u5757\uFF0C\u5176\u4E2D {1} \u4E2A\u9010\u4E2A\u7ED8\u5236\uFF1A{2} \u5230 {3} \u4E4B\u95F4\u7684\u5168\u90E8\uFF0C\u4EE5\u53CA\u5176\u4F59\u65F6\u95F4\u6700\u5927\u7684\u3002",
leftBlocksOnly:"\u5171 {0} \u4E2A\u5757\uFF0C\u5176\u4E2D\u6700\u5927\u7684 {1} \u4E2A\u9010\u4E2A\u7ED8\u5236\u3002",leftPeak:"\
\u5CF0\u503C\u5171 {0} \u884C\uFF0C\u8FD9\u91CC\u662F\u6700\u5927\u7684 {1} \u884C\uFF0C\u5360 {3} \u4E2D\u7684 {2}\u3002",
leftSteps:"\u5171 {0} \u6B65\uFF0C\u8FD9\u91CC\u6709 {1} \u6B65\uFF1A\u6700\u524D\u3001\u6700\u540E\u4EE5\u53CA\u5CF0\u503C\u6700\u5927\u7684\u6B65\u3002",
leftMap:"\u5171 {0} \u4E2A\u6BB5\uFF0C\u8FD9\u91CC\u6709 {1} \u4E2A\u3002",leftBins:"\u65F6\u95F4\u5206\u4E3A {0} \u6BB5\uFF0C\u6BCF\u6BB5 {1}\u3002",
leftRanks:"\u7EC6\u8282\u5C5E\u4E8E {0}\uFF1B\u5176\u4ED6\u8FDB\u7A0B\u53EA\u6709\u5CF0\u503C\u548C\u5404\u6B65\u3002",leftNothing:"\
\u8FD0\u884C\u4E2D\u7684\u5168\u90E8 {0} \u4E2A\u5757\u90FD\u5728\u8FD9\u91CC\u3002",givenUp:"{0} \u4E4B\u524D\u7684\u7EC6\u8282\u5728\u8BB0\u5F55\u65F6\u88AB\u820D\u5F03 (--max-si\
ze)\u3002",full:"\u5168\u90E8\u7EC6\u8282\uFF1A{0}",inSeconds:"\u9884\u8BA1\u7EA6 {0} \u540E\u663E\u5B58\u4E0D\u8DB3\u3002",
inSteps:"\u9884\u8BA1\u7EA6 {0} \u6B65\u540E\u663E\u5B58\u4E0D\u8DB3\u3002",next:"\u4E0B\u4E00\u6B65\uFF1A",madeBy:"\u7531 ti\
demark {0} \u751F\u6210\u3002\u6B64\u6587\u4EF6\u4E0D\u9700\u8981\u7F51\u7EDC\uFF0C\u4E5F\u4E0D\u53D1\u9001\u4EFB\u4F55\u5185\u5BB9\u3002",
failed:"\u65E0\u6CD5\u663E\u793A\u6B64\u9875\u9762\uFF1A{0}",old:"\u6D4F\u89C8\u5668\u8FC7\u65E7\uFF1B\u8BF7\u4F7F\u7528 2023 \u5E74\u6216\u66F4\u65B0\u7684\u6D4F\u89C8\u5668"},
re="en";function oe(i){re=i,document.documentElement.lang=i==="zh"?"zh-CN":"en"}function ge(){return re}function l(i,...e){
return(re==="zh"?je:Ue)[i].replace(/\{(\d)\}/g,(s,n)=>String(e[Number(n)]??"-"))}var I=20,Ve=40;function we(i,e,t,s){return{name:i,kind:e,bytes:0,matches:!1,parent:t,children:new Map,source:s}}function Xe(i,e,t,s){
let n=i;n.bytes+=t;for(let[r,o,a]of e){let c=n.children.get(r);c||n.children.set(r,c=we(r,o,n,a)),c.bytes+=t,c.matches||=
s,n=c}}function Ye(i,e,t,s,n){let r=we(l("total"),3,null,null),o=n?new z(i,n):null,a=new Map,c=u=>{let m=a.get(u);return m||
(m=i.frames(u).filter(d=>!s||d.kind===0).reverse().slice(0,Ve).map(d=>[H(d),d.kind,d.source]),m.length===0&&(m=[[l("noSt\
ack"),2,null]]),a.set(u,m)),m};for(let u=0;u<e.n;u++){let m=t?(i.text(e.keys.module[u])?.split(".")??[l("unknown")]).map(
d=>[d,4,null]):c(e.stack[u]);Xe(r,m,e.bytes[u],o!==null&&o.row(e,u))}return r}var J=class{constructor(e){this.state=e;let t=h(
"div.plot",{},this.canvas,this.tip);this.element=h("div",{},this.tools,t,this.way),this.fillTools(),this.canvas.addEventListener(
"click",s=>this.open(this.boxAt(s))),this.canvas.addEventListener("pointermove",s=>this.point(s)),this.canvas.addEventListener(
"pointerleave",()=>{this.tip.hidden=!0}),this.canvas.addEventListener("keydown",s=>this.key(s)),new ResizeObserver(this.
redraw).observe(t)}element;canvas=h("canvas",{tabindex:0,role:"img","data-plot":"icicle"});tip=h("div.tip",{hidden:!0});tools=h(
"div.tools");way=h("p.faint.note",{"aria-live":"polite"});boxes=[];root;top;rows=null;byModule=!1;ownOnly=!1;redraw=T(()=>this.
draw());show(e){this.rows=e,this.root=Ye(this.state.source,e,this.byModule,this.ownOnly,this.state.view.query),this.top=
this.root,this.redraw()}fillTools(){let e=(t,s,n)=>h("button",{type:"button","aria-pressed":String(s),click:()=>{n(),this.
fillTools(),this.rows&&this.show(this.rows)}},t);w(this.tools,h("div.choices",{role:"group","aria-label":l("icicle")},e(
l("icicleStack"),!this.byModule,()=>{this.byModule=!1}),e(l("icicleModule"),this.byModule,()=>{this.byModule=!0})),!this.
byModule&&h("div.choices",{role:"group"},e(l("allFrames"),!this.ownOnly,()=>{this.ownOnly=!1}),e(l("ownFrames"),this.ownOnly,
()=>{this.ownOnly=!0})))}key(e){let t=[...this.top.children.values()].sort((o,a)=>a.bytes-o.bytes),s=this.top.parent?[...this.
top.parent.children.values()].sort((o,a)=>a.bytes-o.bytes):[this.top],n=s.indexOf(this.top),r={Escape:this.top.parent,Backspace:this.
top.parent,ArrowUp:this.top.parent,ArrowDown:t[0],Enter:t[0],ArrowRight:s[n+1],ArrowLeft:s[n-1],Home:this.root};e.key in
r&&(e.preventDefault(),this.open(r[e.key]??null))}open(e){e&&(this.top=e===this.top&&e.parent?e.parent:e,this.redraw())}boxAt(e){
let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top;return this.boxes.find(r=>s>=r.x&&s<r.x+r.
w&&n>=r.y&&n<r.y+I)?.node??null}point(e){let t=this.boxAt(e),s=this.canvas.getBoundingClientRect();if(this.tip.hidden=t===
null,!t)return;w(this.tip,h("b",{},t.name),t.source&&h("code.source",{},t.source),h("div.row",{},h("span",{},l("size")),
h("b",{},f(t.bytes))),h("div.row",{},h("span",{},l("share")),h("span",{},E(t.bytes,this.root.bytes))));let n=e.clientX-s.
left,r=n>s.width/2;this.tip.style.left=r?"":`${n+14}px`,this.tip.style.right=r?`${s.width-n+14}px`:"",this.tip.style.top=
`${e.clientY-s.top+16}px`}layOut(e){this.boxes=[];let t=[];for(let r=this.top.parent;r;r=r.parent)t.unshift(r);t.forEach(
(r,o)=>this.boxes.push({node:r,x:0,y:o*I,w:e}));let s=t.length,n=(r,o,a,c)=>{s=Math.max(s,c),this.boxes.push({node:r,x:o,
y:c*I,w:a});let u=o;for(let m of[...r.children.values()].sort((d,p)=>p.bytes-d.bytes)){let d=a*m.bytes/r.bytes;d>=1&&n(m,
u,d,c+1),u+=d}};return this.top.bytes>0&&n(this.top,0,e,t.length),(s+1)*I}colour(e){return e.kind===3?y("--rest"):e.kind===
4?e.name===l("unknown")?y("--rest"):Ze(e.name):`color-mix(in srgb, ${y(e.kind===0?"--own":e.kind===1?"--library":"--inne\
r")} ${100-Ge(e.name)}%, #000)`}draw(){if(!this.element.isConnected||!this.root)return;let e=this.canvas.parentElement.clientWidth,
t=this.layOut(e),s=_(this.canvas,t),n=this.state.view.query;s.font="12px system-ui, sans-serif",s.textBaseline="middle";
for(let r of this.boxes)s.globalAlpha=n&&r.node.kind!==3&&!r.node.matches?.3:1,s.fillStyle=this.colour(r.node),s.fillRect(
r.x,r.y,Math.max(1,r.w-1),I-1),!(r.w<34)&&(s.fillStyle=r.node.kind===3?y("--text"):"#fff",s.fillText(Qe(s,`${Je(r.node)}\
  ${f(r.node.bytes)}`,r.w-10),r.x+5,r.y+I/2));s.globalAlpha=1,this.canvas.setAttribute("aria-label",`${l("icicle")}: ${this.
top.name}, ${f(this.top.bytes)}. `+[...this.top.children.values()].sort((r,o)=>o.bytes-r.bytes).slice(0,5).map(r=>`${r.name}\
 ${f(r.bytes)}`).join("; ")),w(this.way,l("icicleHint"))}};function Ge(i){let e=0;for(let t=0;t<i.length;t++)e=Math.imul(
31,e)+i.charCodeAt(t)>>>0;return e%4*8}function Ze(i){return`color-mix(in srgb, ${x(i)} 78%, #000)`}function Je(i){if(i.
kind>2)return i.name;let[e,...t]=i.name.split(" "),s=t.join(" "),n=e.slice(e.lastIndexOf("/")+1);return s?`${s}  ${n}`:n}
function Qe(i,e,t){if(i.measureText(e).width<=t)return e;let s=0,n=e.length;for(;s<n;){let r=s+n+1>>1;i.measureText(`${e.
slice(0,r)}\u2026`).width<=t?s=r:n=r-1}return s>1?`${e.slice(0,s)}\u2026`:""}function et(i,e,t,s,n){let r=[];for(let a=0;a<i.n&&i.alloc[a]<=s;a++){if(i.free[a]<t||i.device[a]!==e)continue;let c=Math.
min(i.free[a],s)-Math.max(i.alloc[a],t);r.push({block:a,area:i.size[a]*Math.max(c,(s-t)/4e3)})}r.sort((a,c)=>c.area-a.area);
let o=r.slice(0,n).map(a=>a.block).sort((a,c)=>a-c);return{chosen:o,hidden:r.length-o.length}}function ke(i,e,t,s,n=1200){
let{chosen:r,hidden:o}=et(i,e,t,s,n),a=r.flatMap((u,m)=>[{ns:Math.max(i.alloc[u],t),i:m,isFree:!1},...i.free[u]<s?[{ns:i.
free[u],i:m,isFree:!0}]:[]]);a.sort((u,m)=>u.ns-m.ns||Number(m.isFree)-Number(u.isFree)||u.i-m.i);let c=r.map(u=>({block:u,
from:Math.max(i.alloc[u],t),to:Math.min(i.free[u],s),times:[],levels:[]}));return{strips:c,hidden:o,top:tt(i,c,a)}}function tt(i,e,t){
let s=[],n=0,r=0;for(let o of t){let a=i.size[e[o.i].block];if(!o.isFree){e[o.i].times.push(o.ns),e[o.i].levels.push(n),
s.push(o.i),n+=a,r=Math.max(r,n);continue}let c=s.indexOf(o.i);if(!(c<0)){s.splice(c,1),n-=a;for(let u=c;u<s.length;u++){
let m=e[s[u]],d=m.levels[m.levels.length-1]-a;m.times[m.times.length-1]===o.ns?m.levels[m.levels.length-1]=d:(m.times.push(
o.ns),m.levels.push(d))}}}return r}function xe(i,e,t,s){for(let n of e.strips){if(t<n.from||t>n.to)continue;let r=n.times.
length-1;for(;r>0&&n.times[r]>t;)r--;if(s>=n.levels[r]&&s<n.levels[r]+i.size[n.block])return n}return null}var Me=14,b={left:70,right:10,top:18,bottom:24};function st(i,e){let t=0;return i.map(s=>{if(s.others>0)return x("other");
if(s.key===null||e!=="module")return x(s.key);let n=t++,r=L[n%L.length];return n<L.length?r:`color-mix(in srgb, ${r} 55%\
, ${n%20<10?"#fff":"#000"})`})}function K(i){return i.others>0?l("others",g(i.others)):i.key??l("unknown")}var Q=class{constructor(e){
this.state=e;this.source=e.source;let t=h("div.plot",{},this.canvas,this.overlay,this.tip);this.element=h("section",{id:"\
timeline"},h("h2",{},l("timeline")),this.tools,this.legend,t,h("div.plot",{},this.overview),this.note,this.values),this.
listen(t),this.fillTools(),e.listen(s=>{("by"in s||"strips"in s||"device"in s)&&this.fillTools(),this.redraw()}),new ResizeObserver(
this.redraw).observe(t)}element;canvas=h("canvas",{tabindex:0,role:"img","data-plot":"timeline"});overlay=h("canvas.over\
lay",{"aria-hidden":"true"});overview=h("canvas.overview",{"aria-hidden":"true"});tip=h("div.tip",{hidden:!0});legend=h(
"div.legend");tools=h("div.tools");note=h("p.faint.note");values=h("details",{toggle:()=>this.fillValues()});bins;colours=[];strips=null;top=1;hover=null;redraw=T(
()=>this.draw());rehover=T(()=>this.drawHover());source;fillTools(){let e=this.state.view,t=this.state,s=(a,c,u)=>h("but\
ton",{type:"button","aria-pressed":String(c),click:u},a),n=h("div.choices",{role:"group","aria-label":l("by")},R.map(a=>s(
l(a),e.by===a&&!e.strips,()=>t.change({by:a,strips:!1}))),s(l("blocks"),e.strips,()=>t.change({strips:!0}))),r=this.source.
devices.length<2?null:h("select",{"aria-label":l("deviceLabel"),change:a=>t.change({device:a.target.selectedIndex})},this.
source.devices.map((a,c)=>h("option",{selected:c===e.device},a))),o=(a,c,u)=>h("button",{type:"button","aria-label":a,title:a,
click:u},c);w(this.tools,n,r,h("div.choices",{role:"group"},o(l("zoomIn"),"+",()=>this.zoom(.5)),o(l("zoomOut"),"\u2212",
()=>this.zoom(2)),o(l("left"),"\u2190",()=>this.pan(-.3)),o(l("right"),"\u2192",()=>this.pan(.3)),o(l("toPeak"),l("toPea\
k"),()=>this.toPeak()),o(l("all"),l("all"),()=>t.change({from:this.source.start,to:this.source.end}))))}toPeak(){let e=this.
source.drawn.peak,t=this.source.drawn.blocks;if(!e)return;let s=t.window_start_ns!==null&&t.window_end_ns!==null&&t.window_end_ns-
t.window_start_ns<this.source.end*.9,n=this.source.end/100;this.state.change({from:s?t.window_start_ns:e.time_ns-n,to:s?
t.window_end_ns:e.time_ns+n,device:e.device,cursor:null})}zoom(e,t){let{from:s,to:n}=this.state.view,r=t??(s+n)/2;this.state.
change({from:r-(r-s)*e,to:r+(n-r)*e})}pan(e){let{from:t,to:s}=this.state.view,n=(s-t)*e;this.state.change({from:t+n,to:s+
n})}listen(e){let t=new Map,s=0,n=null,r=o=>o.clientX-e.getBoundingClientRect().left;e.addEventListener("pointerdown",o=>{
t.set(o.pointerId,r(o)),s=0,n=o.shiftKey?r(o):null,e.setPointerCapture(o.pointerId)}),e.addEventListener("pointermove",o=>{
this.hover={x:r(o),y:o.clientY-e.getBoundingClientRect().top};let a=t.get(o.pointerId);a!==void 0&&(s+=Math.abs(r(o)-a),
t.size===2?this.pinch(t,o.pointerId,r(o)):n===null&&this.pan((a-r(o))/this.plotWidth()),t.set(o.pointerId,r(o))),this.brush=
n,this.rehover()}),e.addEventListener("pointerup",o=>{n!==null&&Math.abs(r(o)-n)>4?this.state.change({from:this.timeAt(Math.
min(r(o),n)),to:this.timeAt(Math.max(r(o),n))}):t.size===1&&s<5&&this.look(r(o)),t.delete(o.pointerId),n=this.brush=null}),
e.addEventListener("pointercancel",o=>t.delete(o.pointerId)),e.addEventListener("pointerleave",()=>{this.hover=null,this.
rehover()}),e.addEventListener("dblclick",()=>this.state.change({from:this.source.start,to:this.source.end})),e.addEventListener(
"wheel",o=>this.wheel(o,r(o)),{passive:!1}),this.canvas.addEventListener("keydown",o=>this.key(o)),this.listenOverview()}brush=null;wheel(e,t){
let s=e.shiftKey||Math.abs(e.deltaX)>Math.abs(e.deltaY);!s&&e.deltaY>0&&this.state.isWhole||(e.preventDefault(),s?this.pan(
(e.deltaX||e.deltaY)/this.plotWidth()):this.zoom(Math.exp($(e.deltaY,-200,200)/300),this.timeAt(t)))}pinch(e,t,s){let n=[
...e].find(([c])=>c!==t)[1],r=e.get(t),o=Math.abs(r-n),a=Math.abs(s-n);o>10&&a>10&&this.zoom(o/a,this.timeAt((s+n)/2))}key(e){
let{from:t,to:s,cursor:n}=this.state.view,o={"+":()=>this.zoom(.6),"=":()=>this.zoom(.6),"-":()=>this.zoom(1/.6),0:()=>this.
state.change({from:this.source.start,to:this.source.end}),Home:()=>this.state.change({from:this.source.start,to:this.source.
end}),p:()=>this.toPeak(),b:()=>this.state.change({strips:!this.state.view.strips}),Escape:()=>this.state.change({cursor:null}),
ArrowLeft:()=>e.shiftKey?this.moveCursor(-1):this.pan(-.1),ArrowRight:()=>e.shiftKey?this.moveCursor(1):this.pan(.1),Enter:()=>this.
look(this.xOf(n??(t+s)/2))}[e.key];!o||e.ctrlKey||e.metaKey||e.altKey||(e.preventDefault(),o())}moveCursor(e){let{from:t,
to:s,cursor:n}=this.state.view,r=(s-t)/this.plotWidth()*4;this.state.change({cursor:$((n??(t+s)/2)+e*r,t,s)})}look(e){if(e<
b.left)return;let t=this.timeAt(e),s=this.binAt(t);this.state.change({cursor:this.bins.exact||this.state.view.strips?t:this.
bins.at[s]})}listenOverview(){let e=!1,t=s=>{let n=this.overview.getBoundingClientRect(),{from:r,to:o}=this.state.view,a=(s.
clientX-n.left-b.left)/(n.width-b.left-b.right)*this.source.end;this.state.change({from:a-(o-r)/2,to:a+(o-r)/2})};this.overview.
addEventListener("pointerdown",s=>{e=!0,this.overview.setPointerCapture(s.pointerId),t(s)}),this.overview.addEventListener(
"pointermove",s=>{e&&t(s)}),this.overview.addEventListener("pointerup",()=>{e=!1})}get height(){return window.innerWidth<
600?240:300}plotWidth(){return Math.max(50,this.canvas.parentElement.clientWidth-b.left-b.right)}plotHeight(){return this.
height-b.top-b.bottom}timeAt(e){let{from:t,to:s}=this.state.view;return t+$((e-b.left)/this.plotWidth(),0,1)*(s-t)}xOf(e){
let{from:t,to:s}=this.state.view;return b.left+(e-t)/(s-t)*this.plotWidth()}yOf(e){return b.top+(1-e/this.top)*this.plotHeight()}binAt(e){
return $(Math.floor((e-this.bins.start)/this.bins.width),0,this.bins.n-1)}limit(){return Y(this.source,this.source.devices[this.
state.view.device])}read(){let e=this.state.view;this.bins=this.source.bins(e.device,e.from,e.to,this.plotWidth(),e.by),
this.colours=st(this.bins.keys,e.by),this.strips=e.strips?ke(this.source.blocks,e.device,e.from,e.to):null;let t=1;for(let n=0;n<
this.bins.n;n++)t=Math.max(t,this.bins.max[n],this.bins.reserved[n]-1,this.bins.used[n]-1);let s=this.limit();s!==null&&
s<=t*1.6&&(t=Math.max(t,s)),this.top=t*1.04}draw(){if(!this.element.isConnected||this.source.devices.length===0)return;this.
read();let e=_(this.canvas,this.height);this.drawGrid(e),e.save(),e.beginPath(),e.rect(b.left,b.top,this.plotWidth(),this.
plotHeight()),e.clip(),this.strips?this.drawStrips(e,this.strips):this.drawLayers(e),this.drawLines(e),e.restore(),this.
drawMarks(e),this.drawOverview(),this.drawHover(),this.tellSoon()}tellSoon(){let e=performance.now();if(clearTimeout(this.
timer),e-this.told<200){this.timer=window.setTimeout(()=>this.tellSoon(),200);return}this.told=e,this.fillLegend(),this.
describe()}told=-1/0;timer=0;drawGrid(e){let{from:t,to:s}=this.state.view,n=this.plotWidth(),r=this.plotHeight();e.font=
"11px system-ui, sans-serif",e.strokeStyle=y("--grid"),e.fillStyle=y("--faint"),e.lineWidth=1,e.textAlign="right",e.textBaseline=
"middle";let o=Z(this.top,5);for(let u=0;u<=this.top;u+=o){let m=Math.round(this.yOf(u))+.5;C(e,b.left,m,b.left+n,m),e.fillText(
f(u),b.left-6,m)}e.textAlign="center",e.textBaseline="top";let a=W(s-t,n/110),c=this.source.offset;for(let u=Math.ceil((t+
c)/a)*a;u<=s+c;u+=a){let m=Math.round(this.xOf(u-c))+.5;C(e,m,b.top+r,m,b.top+r+4),e.fillText(A(u,a,s+c),$(m,b.left+20,b.
left+n-24),b.top+r+7)}this.drawSteps(e)}drawSteps(e){let t=this.source.column("steps.start"),s=this.source.column("steps\
.step"),{from:n,to:r}=this.state.view,o=ae(t,n),a=ae(t,r);if(a-o>this.plotWidth())return;let c=this.source.process.ooms.
map(u=>this.xOf(u.time_ns-this.source.offset));e.textAlign="left",e.textBaseline="bottom";for(let u=o,m=-1/0,d=-1/0;u<a;u++){
let p=Math.round(this.xOf(t[u]))+.5,v=u+1<t.length?this.xOf(t[u+1]):1/0;p-m<12||v-p<12||(C(e,p,b.top-4,p,b.top+this.plotHeight()),
m=p,!(p-d<60||v-p<40||p>b.left+this.plotWidth()-50||c.some(k=>Math.abs(k-p-25)<45))&&(e.fillText(`${l("step")} ${s[u]}`,
p+3,b.top),d=p))}}drawLayers(e){let t=this.bins,s=t.n,n=new Float64Array(s),r=new Float64Array(s+1);for(let o=0;o<=s;o++)
r[o]=this.xOf(t.start+o*t.width);t.layers.forEach((o,a)=>{e.fillStyle=this.colours[a],e.beginPath();for(let c=0;c<s;c++){
let u=this.yOf(n[c]+o[c]);e.lineTo(r[c],u),e.lineTo(r[c+1],u)}for(let c=s-1;c>=0;c--){let u=this.yOf(n[c]);e.lineTo(r[c+
1],u),e.lineTo(r[c],u)}e.fill();for(let c=0;c<s;c++)n[c]+=o[c]})}drawStrips(e,t){let s=this.source.blocks,n=this.state.view.
by,r=s.keys[n],o=new Map(this.bins.keys.map((c,u)=>[c.others?"\0":c.key,this.colours[u]])),a=this.state.view.query?new z(
this.source,this.state.view.query):null;this.fillTotal(e,y("--rest")),e.lineWidth=.5,e.strokeStyle=y("--surface");for(let c of t.
strips){let u=this.source.text(r[c.block]);e.globalAlpha=a&&!a.row(s,c.block)?.15:1,e.fillStyle=o.get(u)??o.get("\0")??x(
u),this.stripPath(e,c),e.fill(),s.size[c.block]/this.top*this.plotHeight()>3&&e.stroke()}e.globalAlpha=1}stripPath(e,t){
let s=this.source.blocks.size[t.block];e.beginPath();for(let n=0;n<t.times.length;n++){let r=this.yOf(t.levels[n]);e.lineTo(
this.xOf(t.times[n]),r),e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),r)}for(let n=t.times.length-1;n>=0;n--){
let r=this.yOf(t.levels[n]+s);e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),r),e.lineTo(this.xOf(t.times[n]),r)}
e.closePath()}fillTotal(e,t){let s=this.bins;e.fillStyle=t,e.beginPath(),e.moveTo(this.xOf(s.start),this.yOf(0));for(let n=0;n<
s.n;n++)e.lineTo(this.xOf(s.start+n*s.width),this.yOf(s.max[n])),e.lineTo(this.xOf(s.start+(n+1)*s.width),this.yOf(s.max[n]));
e.lineTo(this.xOf(s.start+s.n*s.width),this.yOf(0)),e.fill()}series(e,t,s){let n=this.bins;e.beginPath();let r=!1;for(let o=0;o<
n.n;o++){if(t[o]-s<0){r=!1;continue}let a=this.xOf(n.start+o*n.width),c=this.yOf(t[o]-s);r?e.lineTo(a,c):e.moveTo(a,c),e.
lineTo(this.xOf(n.start+(o+1)*n.width),c),r=!0}e.stroke()}drawLines(e){e.lineWidth=1,e.strokeStyle=y("--least"),this.strips||
this.series(e,this.bins.min,0),e.lineWidth=1.5,e.strokeStyle=y("--reserved"),this.series(e,this.bins.reserved,1),e.setLineDash(
[5,3]),e.strokeStyle=y("--device"),this.series(e,this.bins.used,1);let t=this.limit();t!==null&&t<=this.top&&(e.strokeStyle=
y("--bad"),e.setLineDash([8,4]),C(e,b.left,this.yOf(t),b.left+this.plotWidth(),this.yOf(t))),e.setLineDash([])}drawMarks(e){
let t=this.source.offset,s=b.top+this.plotHeight(),n=o=>o>=b.left-1&&o<=b.left+this.plotWidth()+1;e.textAlign="center",e.
textBaseline="bottom",e.font="bold 11px system-ui, sans-serif";for(let o of this.source.process.marks){let a=this.xOf(o.
time_ns-t);n(a)&&(e.fillStyle=y("--accent"),e.beginPath(),e.moveTo(a,s-8),e.lineTo(a+5,s),e.lineTo(a-5,s),e.fill())}for(let o of this.
source.process.ooms){let a=this.xOf(o.time_ns-t);!n(a)||o.device!==this.source.devices[this.state.view.device]||(e.strokeStyle=
e.fillStyle=y("--bad"),e.lineWidth=1.5,C(e,a,b.top,a,s),e.fillText("OOM",$(a,b.left+14,b.left+this.plotWidth()-14),b.top-
2))}let r=this.state.view.cursor;r!==null&&n(this.xOf(r))&&(e.strokeStyle=y("--accent"),e.lineWidth=2,C(e,this.xOf(r),b.
top,this.xOf(r),s))}drawOverview(){let t=_(this.overview,40),s=this.plotWidth(),n=this.state.view,r=this.source.bins(n.device,
this.source.start,this.source.end,s,n.by),o=1;for(let u=0;u<r.n;u++)o=Math.max(o,r.max[u]);t.fillStyle=y("--rest");for(let u=0;u<
r.n;u++){let m=b.left+u/r.n*s,d=40-r.max[u]/o*36;t.fillRect(m,d,Math.max(1,s/r.n+.3),40-d)}let a=b.left+n.from/this.source.
end*s,c=b.left+n.to/this.source.end*s;t.fillStyle=y("--shade"),t.fillRect(b.left,0,a-b.left,40),t.fillRect(c,0,b.left+s-
c,40),t.strokeStyle=y("--accent"),t.lineWidth=2,t.strokeRect(a,1,Math.max(2,c-a),38)}drawHover(){let e=_(this.overlay,this.
height),t=this.hover,s=t&&this.bins&&t.x>=b.left&&t.x<=b.left+this.plotWidth();if(this.tip.hidden=!s,!t||!s)return;e.strokeStyle=
y("--text"),e.globalAlpha=.6,C(e,t.x,b.top,t.x,b.top+this.plotHeight()),this.brush!==null&&(e.fillStyle=y("--accent"),e.
globalAlpha=.2,e.fillRect(Math.min(this.brush,t.x),b.top,Math.abs(t.x-this.brush),this.plotHeight()));let n=this.timeAt(
t.x),r=(1-(t.y-b.top)/this.plotHeight())*this.top,o=this.strips?xe(this.source.blocks,this.strips,n,r):null;o&&(e.globalAlpha=
1,e.lineWidth=2,this.stripPath(e,o),e.stroke()),w(this.tip,o?this.blockTip(o.block):this.binTip(n,r));let a=t.x>b.left+this.
plotWidth()/2;this.tip.style.left=a?"":`${t.x+14}px`,this.tip.style.right=a?`${this.tip.parentElement.clientWidth-t.x+14}\
px`:"",this.tip.style.top=`${Math.min(t.y,60)}px`}stepAt(e){let t=this.source.column("steps.start"),s=this.source.column(
"steps.end"),n=ae(t,e+1)-1;return n>=0&&e<=s[n]?this.source.column("steps.step")[n]:null}when(e){let t=this.stepAt(e),{from:s,
to:n}=this.state.view,r=A(e+this.source.offset,(n-s)/1e3);return t===null?r:`${r} \xB7 ${l("step")} ${t}`}binTip(e,t){let s=this.
bins,n=this.binAt(e),r=this.source.process.marks.filter(m=>Math.abs(this.xOf(m.time_ns-this.source.offset)-this.xOf(e))<
5),o=s.layers.map((m,d)=>({k:d,value:m[n]})).filter(m=>m.value>0),a=0,c=-1;for(let m of o)t>=a&&t<a+m.value&&(c=m.k),a+=
m.value;o.sort((m,d)=>d.value-m.value);let u=o.slice(0,9);return[h("b",{},this.when(s.exact?e:s.at[n])),...r.map(m=>h("d\
iv.mark",{},`\u25B2 ${m.name??""} ${m.text}`)),h("div.row",{},h("span",{},l("allocated")),h("b",{"data-value":"allocated"},
f(s.max[n]))),...this.strips?[]:u.map(m=>h(m.k===c?"div.row.under":"div.row",{},h("span",{},F(this.colours[m.k]),K(s.keys[m.
k])),h("span",{},f(m.value)))),...s.reserved[n]>0?[h("div.row",{},h("span",{},l("reserved")),h("span",{},f(s.reserved[n]-
1)))]:[],...s.used[n]>0?[h("div.row",{},h("span",{},l("used")),h("span",{},f(s.used[n]-1)))]:[]]}blockTip(e){let t=this.
source.blocks,s=this.source.frames(t.stack[e]),n=this.source.text(t.tensor[e]),r=this.source.offset,o=(c,u)=>u===null?[]:
[h("div.row",{},h("span",{},c),h("span",{},u))],a=t.free[e]===1/0?l("stillAlive"):B(t.free[e]-t.alloc[e]);return[h("b",{},
n??l("block")),...o(l("size"),f(t.size[e])),...R.flatMap(c=>o(l(c),this.source.text(t.keys[c][e]))),...o(l("allocatedAt"),
A(t.alloc[e]+r,Math.max(1,(this.state.view.to-this.state.view.from)/1e3))),...o(l("lifetime"),a),...o(l("step"),t.step[e]>
0?String(t.step[e]-1):null),h("code",{},s.length?H(P(s)):l("noStack")),...P(s)?.source?[h("code.source",{},P(s).source)]:
[]]}fillLegend(){let e=this.bins,t=(c,u)=>h("span",{},h(`i.${c}`),u),s=e.keys.map((c,u)=>({k:c,i:u,most:Math.max(...e.layers[u])})).
filter(c=>c.most>0),n=s.map(c=>c.most).sort((c,u)=>u-c)[Me-1]??0,r=s.filter(c=>c.most>=n).slice(0,Me),o=c=>c.some(u=>u>0),
a=this.limit();w(this.legend,r.reverse().map(({k:c,i:u})=>h("span",{},F(this.colours[u]),K(c))),s.length>r.length&&h("sp\
an",{},`+ ${s.length-r.length}`),this.strips&&h("span",{},F(y("--rest")),l("smaller")),o(e.reserved)&&t("line-reserved",
l("reserved")),o(e.used)&&t("line-used",l("used")),a!==null&&t("line-limit",`${l("limit")} ${f(a)}`),!this.strips&&!e.exact&&
t("line-least",l("least")))}describe(){let e=this.bins,{from:t,to:s}=this.state.view,n=this.source.offset,r=0;for(let c=1;c<
e.n;c++)e.max[c]>e.max[r]&&(r=c);let o=Math.max(1,(s-t)/100);this.canvas.setAttribute("aria-label",`${l("timeline")}: ${A(
t+n,o)} \u2013 ${A(s+n,o)}, ${l("peakFigure")} ${f(e.max[r])} ${l("at",A(e.at[r]+n,o))}. ${l("hint")}`);let a=B(e.width);
w(this.note,e.exact?l("exact"):l("binned",a),". ",l("hint")),w(this.values,h("summary",{},l("table"))),this.values.open&&
this.fillValues()}fillValues(){if(!this.values.open||this.values.childElementCount>1)return;let e=this.state.view,t=this.
source.bins(e.device,e.from,e.to,24,e.by),s=Array.from({length:t.n},(n,r)=>[this.when(t.start+r*t.width),f(t.max[r]),t.keys.
map((o,a)=>({k:o,value:t.layers[a][r]})).sort((o,a)=>a.value-o.value).slice(0,3).filter(o=>o.value>0).map(o=>`${K(o.k)} ${f(
o.value)}`).join(", "),t.reserved[r]>0?f(t.reserved[r]-1):"-"]);this.values.append(S([l("time"),l("allocated"),l(e.by),l(
"reserved")],s,[1,3]))}};function C(i,e,t,s,n){i.beginPath(),i.moveTo(e,t),i.lineTo(s,n),i.stroke()}function ae(i,e){let t=0,
s=i.length;for(;t<s;){let n=t+s>>1;i[n]<e?t=n+1:s=n}return t}var nt=[...R,"line","tensor"],le=40,ee=class{constructor(e){this.state=e;this.icicle=new J(e),this.element=h("section",{
id:"peak"},h("h2",{},l("peak")),this.head,h("div.halves",{},h("div",{},this.tools,this.sums),this.icicle.element)),e.listen(
t=>{("cursor"in t||"device"in t||"query"in t)&&this.refresh()}),this.refresh()}element;head=h("div.tools");tools=h("div.\
tools");sums=h("div");icicle;by="category";rows=null;total=0;refresh(){let{cursor:e,device:t}=this.state.view,s=this.state.
source,n=s.drawn.peak;e===null?(this.rows=s.peakRows,this.total=n?.bytes??0):(this.rows=s.hasAll(e,e)?ve(s,t,e):null,this.
total=this.rows?this.rows.bytes.reduce((r,o)=>r+o,0):this.binAt(e).max),!this.rows&&(this.by==="line"||this.by==="tensor")&&
(this.by="category"),this.fillHead(),this.fillTools(),this.fillSums(),this.icicle.element.hidden=!this.rows,this.rows&&this.
icicle.show(this.rows)}binAt(e){let t=this.by==="line"||this.by==="tensor"?"category":this.by,s=this.state.source.end/this.
state.source.drawn.timeline.bins,n=this.state.source.bins(this.state.view.device,e,e+s/100,.01,t),r=Math.max(0,Math.min(
n.n-1,Math.floor((e-n.start)/n.width))),o=n.keys.map((a,c)=>({key:K(a),bytes:n.layers[c][r],blocks:NaN,stack:0}));return{
max:n.max[r],layers:o.filter(a=>a.bytes>0).sort((a,c)=>c.bytes-a.bytes)}}fillHead(){let{cursor:e}=this.state.view,t=this.
state.source,s=t.offset,n=e??t.drawn.peak?.time_ns??0,r=O(n+s);w(this.head,h("b",{"data-value":"moment"},e===null?l("pea\
kMoment",r):l("moment",r)),h("span",{"data-value":"total","data-exact":this.total},G(this.total)),e!==null&&h("button",{
type:"button",click:()=>this.state.change({cursor:null})},l("backToPeak")))}fillTools(){let e=this.rows?nt:R;w(this.tools,
h("div.choices",{role:"group","aria-label":l("composition")},e.map(t=>h("button",{type:"button","aria-pressed":String(t===
this.by),click:()=>{this.by=t,this.fillTools(),this.fillSums()}},l(t)))))}fillSums(){let e=this.state.source,t=this.state.
view.query,s=this.rows,n=t&&s?new z(e,t):null,r=s?ye(e,s,this.by,n?a=>n.row(s,a):void 0):this.binAt(this.state.view.cursor??
0).layers,o=r.reduce((a,c)=>a+c.bytes,0);w(this.sums,n&&h("p.found",{"data-value":"found"},r.length?l("results",f(o)):l(
"noMatch")),S([this.by==="line"?l("place"):l("name"),l("size"),l("share"),l("blocksHead"),""],r.slice(0,le).map(a=>this.
row(a)),[1,2,3]),r.length>le&&h("p.faint",{},l("shown",le,g(r.length)))),this.sums.dataset.by=this.by}row(e){let t=this.
by==="line"||this.by==="tensor"?"var(--accent)":x(e.key),s=this.by==="line"?P(this.state.source.frames(e.stack))?.source:
null,n=h("span",{title:e.key??"","data-key":e.key??l("unknown"),"data-exact":e.bytes},e.key??l("unknown"));return[h(this.
by==="line"?"div.key.mono":"div.key",{},this.by!=="line"&&this.by!=="tensor"&&F(t),n,s&&h("code.source",{},s)),f(e.bytes),
E(e.bytes,this.total),Number.isNaN(e.blocks)?"-":g(e.blocks),D(e.bytes/Math.max(1,this.total),t)]}};function it(i,e){let t=i.column(`bins.${e}.max`),s=t.reduce((o,a)=>Math.max(o,a),1),r=t.findIndex(o=>o>s*.01)/Math.max(1,
t.length);return r>.25?i.end*Math.max(0,r-(1-r)*.04):i.start}var te=class{constructor(e){this.source=e;let t=e.drawn.peak?.
device??0;this.view={from:it(e,t),to:e.end,device:t,by:"category",strips:!1,cursor:null,query:""},this.read()}view;listeners=[];listen(e){
this.listeners.push(e)}change(e){Object.assign(this.view,e),this.keepInside(),this.writeSoon();for(let t of this.listeners)
t(e)}keepInside(){let e=this.view,{start:t,end:s}=this.source,n=Math.min(s-t,Math.max(20,e.to-e.from));e.from=Math.max(t,
Math.min(e.from,s-n)),e.to=e.from+n}get isWhole(){return this.view.from<=this.source.start&&this.view.to>=this.source.end}seconds(e){
return String(Math.round(e+this.source.offset)/1e9)}writeSoon(){clearTimeout(this.timer),this.timer=window.setTimeout(()=>this.
write(),150)}timer=0;write(){let e=this.view,t=[];this.isWhole||t.push(`t=${this.seconds(e.from)}-${this.seconds(e.to)}`),
e.by!=="category"&&t.push(`by=${e.by}`),e.strips&&t.push("blocks=1"),e.device!==(this.source.drawn.peak?.device??0)&&t.push(
`device=${e.device}`),e.cursor!==null&&t.push(`at=${this.seconds(e.cursor)}`),e.query&&t.push(`q=${encodeURIComponent(e.
query)}`);let s=t.length?`#${t.join("&")}`:"#";s!==(location.hash||"#")&&history.replaceState(null,"",s)}read(){let e=new URLSearchParams(
location.hash.slice(1)),t=this.view,s=c=>Number(c)*1e9-this.source.offset,n=/^([\d.]+)-([\d.]+)$/.exec(e.get("t")??"");n&&
s(n[2])>s(n[1])&&(t.from=s(n[1]),t.to=s(n[2]));let r=e.get("by");r&&R.includes(r)&&(t.by=r),t.strips=e.get("blocks")==="\
1";let o=Number(e.get("device")??t.device);Number.isInteger(o)&&o>=0&&o<this.source.devices.length&&(t.device=o);let a=e.
get("at");a!==null&&Number.isFinite(Number(a))&&(t.cursor=s(a)),t.query=e.get("q")??"",this.keepInside()}};var M={left:70,right:10,top:8,bottom:22},q=class{constructor(e,t){this.curves=e;this.options=t;this.canvas=h("canvas",{role:"\
img","aria-label":t.label,"data-plot":"curves"});let s=h("div.plot",{},this.canvas,this.tip);this.element=h("div",{},s,h(
"div.legend",{},e.length<9&&e.map(n=>{let r=h("i.swatch");return r.style.background=n.colour,h("span",{},r,n.name)}))),this.
canvas.addEventListener("pointermove",n=>this.point(n)),this.canvas.addEventListener("pointerleave",()=>{this.tip.hidden=
!0}),t.click&&(this.canvas.style.cursor="pointer",this.canvas.addEventListener("click",n=>t.click(this.placeAt(n)))),new ResizeObserver(
this.redraw).observe(s)}element;canvas;tip=h("div.tip",{hidden:!0});redraw=T(()=>this.draw());top=1;get n(){return Math.
max(1,...this.curves.map(e=>e.values.length))}get width(){return Math.max(40,this.canvas.parentElement.clientWidth-M.left-
M.right)}placeAt(e){let t=e.clientX-this.canvas.getBoundingClientRect().left-M.left;return Math.max(0,Math.min(this.n-1,
Math.floor(t/this.width*this.n)))}drawAxes(e,t){e.font="11px system-ui, sans-serif",e.strokeStyle=y("--grid"),e.fillStyle=
y("--faint"),e.textAlign="right",e.textBaseline="middle";for(let r=0,o=Z(this.top,4);r<=this.top;r+=o){let a=Math.round(
M.top+(1-r/this.top)*t)+.5;C(e,M.left,a,M.left+this.width,a),e.fillText(f(r),M.left-6,a)}e.textBaseline="top",e.textAlign=
"center";let s=Math.max(1,W(this.n,this.width/90)),n=this.options.ticks??Array.from({length:Math.ceil(this.n/s)},(r,o)=>({
at:o*s+.5,text:this.options.x(o*s)}));for(let{at:r,text:o}of n)e.fillText(o,M.left+Math.max(10,r/this.n*this.width),M.top+
t+6)}draw(){if(!this.element.isConnected)return;let e=_(this.canvas,this.options.height),t=this.options.height-M.top-M.bottom;
this.top=1;for(let s of this.curves)for(let n of s.values)n>this.top&&(this.top=n);this.top*=1.05,this.drawAxes(e,t);for(let s of this.
curves)this.drawCurve(e,s,t)}drawCurve(e,t,s){let n=Math.min(this.n,Math.ceil(this.width)),r=M.top+s,o=!1;e.beginPath();
for(let a=0;a<n;a++){let c=Math.floor(a*this.n/n),u=Math.floor((a+1)*this.n/n),m=NaN;for(let k=c;k<Math.max(c+1,u);k++)t.
values[k]<=m||(m=t.values[k]);let d=M.left+a/n*this.width,p=M.left+(a+1)/n*this.width;if(Number.isNaN(m)||m===void 0){o=
!1;continue}let v=M.top+(1-m/this.top)*s;t.filled?e.rect(d,v,Math.max(.6,p-d-(p-d>4?1:0)),r-v):o?e.lineTo(d,v):e.moveTo(
d,v),t.filled||e.lineTo(p,v),o=!0}e.lineWidth=1.6,t.filled?e.fillStyle=t.colour:e.strokeStyle=t.colour,t.filled?e.fill():
e.stroke()}point(e){let t=this.placeAt(e),s=this.canvas.getBoundingClientRect(),n=e.clientX-s.left,r=this.curves.map(a=>({
c:a,v:a.values[t]})).filter(({v:a})=>a>=0).sort((a,c)=>this.curves.length>8?c.v-a.v:0).slice(0,10);this.tip.hidden=r.length===
0,w(this.tip,h("b",{},this.options.x(t)),r.map(({c:a,v:c})=>{let u=h("i.swatch");return u.style.background=a.colour,h("d\
iv.row",{},h("span",{},u,a.name),h("span",{},f(c)))}));let o=n>s.width/2;this.tip.style.left=o?"":`${n+14}px`,this.tip.style.
right=o?`${s.width-n+14}px`:"",this.tip.style.top="10px"}};var U=13,rt=400,se=class{constructor(e){this.state=e;let t=h("div.plot",{},this.canvas,this.tip);this.element=h("div",{},
t);let s=this.column("blocks");for(let n=0,r=0;n<s.length;r+=s[n++])this.first.push(r);this.canvas.addEventListener("poi\
ntermove",n=>this.point(n)),this.canvas.addEventListener("pointerleave",()=>{this.tip.hidden=!0}),new ResizeObserver(this.
redraw).observe(t)}element;canvas=h("canvas",{role:"img","data-plot":"segments"});tip=h("div.tip",{hidden:!0});pieces=[];rowBytes=1;nRows=0;first=[];redraw=T(
()=>this.draw());column(e){return this.state.source.column(`map.${e}`)}layOut(){let e=this.column("size"),t=[...e].sort(
(o,a)=>a-o);this.rowBytes=Math.max(1,t[Math.min(2,t.length-1)]??1,(t[0]??1)/40),this.pieces=[];let s=this.rowBytes/250,n=0,
r=0;for(let o=0;o<e.length&&r<rt;o++){n>0&&n+e[o]>this.rowBytes&&(n=0,r++);for(let a=0;a<e[o];a+=this.rowBytes){let c=Math.
min(e[o],a+this.rowBytes);this.pieces.push({segment:o,from:a,to:c,x:n,y:r*U}),n+=c-a+s,c<e[o]&&(n=0,r++)}}this.nRows=r+1}draw(){
if(!this.element.isConnected)return;this.layOut();let e=_(this.canvas,this.nRows*U+2),t=this.canvas.parentElement.clientWidth,
s=t/this.rowBytes,n=this.column("start"),r=this.column("bytes"),o=this.column("category"),a=this.column("blocks");for(let c of this.
pieces){e.fillStyle=y("--gap"),e.fillRect(c.x*s,c.y,Math.max(1,(c.to-c.from)*s),U-2);for(let u=this.first[c.segment];u<this.
first[c.segment]+a[c.segment];u++){let m=Math.max(n[u],c.from),d=Math.min(n[u]+r[u],c.to);d<=m||(e.fillStyle=x(this.state.
source.text(o[u])),e.fillRect((c.x+m-c.from)*s,c.y,Math.max(.7,(d-m)*s-.4),U-2))}}this.canvas.setAttribute("aria-label",
`${l("map")}: ${this.column("size").length}. ${l("mapHint")}`)}blockAt(e,t){let s=this.column("start"),n=this.column("by\
tes");for(let r=this.first[e.segment];r<this.first[e.segment]+this.column("blocks")[e.segment];r++)if(t>=s[r]&&t<s[r]+n[r])
return r;return-1}point(e){let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top,r=s/t.width*this.
rowBytes,o=this.pieces.find(v=>n>=v.y&&n<v.y+U&&r>=v.x&&r<v.x+v.to-v.from);if(this.tip.hidden=!o,!o)return;let a=o.from+
r-o.x,c=this.blockAt(o,a),u=this.state.source,m=(v,k)=>h("div.row",{},h("span",{},v),h("span",{},k)),d=c>=0?u.frames(this.
column("stack")[c]):[];w(this.tip,h("b",{},c<0?l("gap"):u.text(this.column("tensor")[c])??l("block")),c<0?m(l("size"),f(
this.gapAt(o,a))):m(l("size"),f(this.column("bytes")[c])),c>=0&&m(l("category"),u.text(this.column("category")[c])??l("u\
nknown")),m(l("segment"),`${f(this.column("size")[o.segment])}, `+l(this.column("small")[o.segment]?"smallPool":"largePo\
ol")),m(l("address"),`0x${this.column("address")[o.segment].toString(16)}`),c>=0&&h("code",{},d.length?H(P(d)):l("noStac\
k")));let p=s>t.width/2;this.tip.style.left=p?"":`${s+14}px`,this.tip.style.right=p?`${t.width-s+14}px`:"",this.tip.style.
top=`${n+16}px`}gapAt(e,t){let s=this.column("start"),n=this.column("bytes"),r=0,o=this.column("size")[e.segment];for(let a=this.
first[e.segment];a<this.first[e.segment]+this.column("blocks")[e.segment];a++)if(s[a]+n[a]<=t)r=Math.max(r,s[a]+n[a]);else if(s[a]>
t){o=s[a];break}return o-r}};function N(i,e,...t){return h("section",{id:i},h("h2",{},e),t)}function ot(i){return i===null?l("beforeSteps"):l("inStep",
i)}function at(i){return!i||!i.file?i?.function??l("unknown"):`${i.file}${i.line?`:${i.line}`:""}${i.function?` ${i.function}`:
""}`}function lt(i,e){if(!e?.file)return null;let t=i.column("frames.file"),s=i.column("frames.line");for(let n=0;n<t.length;n++)
if(s[n]===e.line&&i.text(t[n])===e.file)return i.text(i.column("frames.source")[n]);return null}function Se(i,e,t){let s=t??
lt(i,e);return h("div.site",{},h("code",{},at(e)),s&&h("code.source",{},s))}function Ae(i){let e=i.process,t=e.peak,s=i.
report.health,n=s.verdict??"",r=["ran_out","leaks","killed"].includes(n),o=["grew","nearly_ran_out"].includes(n),a=s.text??
"",c=(m,d,p,v,k)=>h("div.figure",{},h("span",{},m),h("b",{"data-value":v,"data-exact":k??void 0},d),h("small",{},p)),u=t?
Y(i,t.device):null;return h("section.summary",{id:"overview"},h(r?"p.verdict.bad":o?"p.verdict.warn":"p.verdict",{role:"\
status"},a),s.next&&h("p",{},l("next")," ",h("code",{},s.next)),h("div.figures",{},t&&c(l("peakFigure"),f(t.allocated),`${t.
device}, ${ot(t.step)}, ${l("at",O(t.time_ns))}`,"peak",t.allocated),t&&c(l("reservedFigure"),f(t.reserved),t.reserved?`${E(
t.allocated,t.reserved)} ${l("allocated")}`:l("unknown"),"reserved"),u!==null&&c(l("limitFigure"),f(u),t?E(t.allocated,u):
"","limit"),c(l("stepsFigure"),g(e.steps.count),e.steps.mean_ns?l("mean",B(e.steps.mean_ns)):"","steps"),c(l("eventsFigu\
re"),g(e.events),B(e.end_ns-e.start_ns),"events")),ct(e))}function ct(i){let e=i.forecast;return!e||i.oom_count>0||e.seconds_to_oom===
null&&e.steps_to_oom===null?null:h("p.verdict.warn",{},e.steps_to_oom!==null?l("inSteps",g(e.steps_to_oom)):l("inSeconds",
B(e.seconds_to_oom*1e9))," ",e.advice.join(" "))}function ht(i){return i.fixes.length===0?null:[h("h3",{},l("fixes")),S(
[l("what"),l("saves"),l("proof")],i.fixes.map(e=>[h("div",{},e.text,e.conf&&h("code.source",{},e.conf)),e.saves_bytes===
null?"-":f(e.saves_bytes),h(e.proof==="estimate"?"span.badge":"span.badge.good",{},l(`proof_${e.proof}`))]),[1])]}function ut(i){
let e=i.evidence.replays;return e?.length?[h("h3",{id:"settings"},l("settings")),S([l("conf"),l("result"),l("needs")],e.
map(t=>[h("code",{},t.conf||l("defaults")),t.runs_out_before?l("sooner"):t.runs_out?l("runsOut"):h("span.badge.good",{},
l("fits")),f(t.needs)]),[2])]:null}function mt(i){let e=[["allocated","allocated"],["reserved","reserved"],["limitFigure",
"limit"],["gap","largest_free"],["otherProcesses","others"]],t=Object.entries(i.evidence.categories??{}).sort((n,r)=>r[1]-
n[1]),s=t.reduce((n,[,r])=>n+r,0);return h("div.halves",{},S([l("evidence"),l("size")],[[l("request"),f(i.request_bytes)],
...e.filter(([,n])=>typeof i.evidence[n]=="number").map(([n,r])=>[l(n),f(i.evidence[r])])],[1]),t.length>0&&S([l("catego\
ry"),l("size"),""],t.map(([n,r])=>[h("span",{},F(x(n)),n),f(r),D(r/s,x(n))]),[1]))}function _e(i){let e=i.source,t=e.report.
explain?.ooms??[];return t.length===0?null:N("ooms",l("ooms"),t.map(s=>h("article",{},h("p.verdict.bad",{},s.text??l(`ca\
use_${s.cause}`)),h("p",{},l("oomLine",f(s.request_bytes),s.step??"-",f(s.evidence.allocated),f(s.evidence.reserved))," ",
h("button",{type:"button",click:()=>ce(i,s.time_ns-e.offset)},l("at",O(s.time_ns)))),Se(e,s.site,s.site?.source),[s.module,
s.stage].some(Boolean)&&h("p.faint",{},[s.module,s.stage].filter(Boolean).join(" \xB7 ")),ht(s),mt(s),ut(s))))}function ce(i,e){
let t=i.source.end/40;i.change({from:e-t,to:e+t,cursor:e}),document.getElementById("timeline").scrollIntoView({block:"st\
art"})}function dt(i,e){let t=e.bytes_per_step!==null?l("perStep",f(e.bytes_per_step)):e.bytes_per_second!==null?`${f(e.
bytes_per_second)}/s`:"-",s=(n,r)=>r?h("div.row",{},h("span",{},l(n)),h("span",{},r)):null;return h("article.leak",{},Se(
i,e,e.source??null),h("div.pairs",{},s("grows",h("b",{},t)),s("size",G(e.growth_bytes)),s("step",e.first_step!==null?l("\
since",e.first_step):null),s("category",e.category),s("module",e.module),s("keptBy",e.kept_by),s("confidence",e.confidence!==
null?E(e.confidence,1):null)),e.evidence&&h("p.faint",{},e.evidence))}function Le(i){let e=i.process;return N("leaks",l(
"leaks"),e.leaks.length===0&&h("p",{},e.leak_text??l("noLeak")),e.leaks.map(t=>dt(i,t)))}function $e(i){let{map:e}=i.source.
drawn;if(!e)return null;let t=i.source.process.fragmentation.find(s=>s.device===e.device);return N("map",l("map"),t&&h("\
p",{},l("mapLine",f(t.reserved),t.device,f(t.allocated),f(t.largest_free))," ",h("button",{type:"button",click:()=>ce(i,
e.time_ns)},l("at",O(e.time_ns+i.source.offset)))),h("p.faint",{},l("mapHint")),new se(i).element)}function Oe(i){let e=i.
source,t=e.drawn.steps.shown;if(t===0)return null;let s=e.column("steps.peak"),n=e.column("steps.end_bytes"),r=e.column(
"steps.step"),o=e.column("steps.start"),a=e.column("steps.end"),c=e.column("steps.bytes"),u=p=>{let v=(a[p]-o[p])*.1;i.change(
{from:o[p]-v,to:a[p]+v}),document.getElementById("timeline").scrollIntoView({block:"start"})},m=new q([{name:l("stepPeak"),
colour:"#86b0d2",values:s,filled:!0},{name:l("stepEnd"),colour:"#d6604d",values:n}],{height:190,label:l("steps"),x:p=>`${l(
"step")} ${r[Math.min(p,t-1)]}`,click:u}),d=Array.from({length:t},(p,v)=>v).sort((p,v)=>s[v]-s[p]||p-v).slice(0,12);return N(
"steps",l("steps"),m.element,h("h3",{},l("largestSteps")),S([l("step"),l("stepPeak"),l("stepEnd"),l("stepBytes"),l("step\
Allocations"),l("stepTime")],d.map(p=>[h("button.link",{type:"button",click:()=>u(p)},String(r[p])),f(s[p]),f(n[p]),f(c[p]),
g(e.column("steps.allocations")[p]),B(a[p]-o[p])]),[1,2,3,4,5]))}function Fe(i){let e=i.drawn.processes,t=i.report.ranks;
if(e.length<2)return null;let s=Math.max(...e.map(u=>u.peak??0),1),n=u=>u.rank!==null?l("rank",u.rank):l("pid",u.pid??"-"),
r=e.map((u,m)=>({p:u,i:m})).filter(({p:u})=>u.has_curve).map(({p:u,i:m})=>({name:n(u),colour:L[m%L.length],values:i.column(
`process.${m}`).map(d=>d>0?d-1:NaN)})),o=Math.max(...e.map(u=>u.end_ns)),a=r[0]?.values.length??1,c=W(o,10);return N("ra\
nks",l("ranks"),t?.says?.map(u=>h("p",{},u)),S([l("process"),l("rankHost"),l("rankPeak"),"",l("step"),l("rankEnd")],e.slice(
0,256).map(u=>[n(u),u.host??"-",h("span",{"data-exact":u.peak??void 0},f(u.peak)),D((u.peak??0)/s,"var(--accent)"),u.peak_step===
null?"-":String(u.peak_step),O(u.end_ns)]),[2,4,5]),e.length>256&&h("p.faint",{},l("shown",256,e.length)),r.length>0&&[h(
"h3",{},l("rankCurves")),new q(r,{height:190,label:l("rankCurves"),x:u=>A(u/a*o,o/100,o),ticks:Array.from({length:Math.floor(
o/c)+1},(u,m)=>({at:m*c/o*a,text:A(m*c,c,o)}))}).element])}function Te(i){let e=i.process.accounting.filter(t=>t.moment===
"peak");return e.length===0?null:N("device",l("device"),e.map(t=>{let s=[...t.segments.map(n=>[n.owner,n.bytes]),[l("con\
text"),t.context],[l("otherProcesses"),t.others],[l("unexplained"),t.unexplained],[l("free"),t.total!==null&&t.used!==null?
t.total-t.used:null]];return[h("h3",{},`${t.device} ${l("at",O(t.time_ns))}`),S([l("owner"),l("size"),l("share"),""],s.filter(
([,n])=>n).map(([n,r])=>[h("span",{},F(x(n)),n),f(r),E(r,t.total??0),D(r/(t.total??r),x(n))]),[1,2])]}))}function Ee(i){
let e=i.drawn,t=i.process,s=[...t.quality.doubts,...i.report.not_recorded],n=u=>O(u+i.offset),{all:r,shown:o,window_start_ns:a,
window_end_ns:c}=e.blocks;return o<r?s.push(a!==null&&c!==null?l("leftBlocks",g(r),g(o),n(a),n(c)):l("leftBlocksOnly",g(
r),g(o))):s.push(l("leftNothing",g(r))),e.timeline.known_ns>0&&s.push(l("givenUp",n(e.timeline.known_ns))),s.push(l("lef\
tBins",g(e.timeline.bins),B(i.end/e.timeline.bins))),e.peak&&e.peak.rows_shown<e.peak.rows&&s.push(l("leftPeak",g(e.peak.
rows),g(e.peak.rows_shown),f(e.peak.bytes_shown),f(e.peak.bytes))),e.steps.shown<e.steps.all&&s.push(l("leftSteps",g(e.steps.
all),g(e.steps.shown))),e.map&&e.map.segments_shown<e.map.segments&&s.push(l("leftMap",g(e.map.segments),g(e.map.segments_shown))),
e.processes.length>1&&s.push(l("leftRanks",he(t))),N("quality",l("quality"),h("ul",{},s.map(u=>h("li",{},u))),h("p.faint",
{},l("full",""),h("code",{},`tidemark query ${be(i.report.run,1)} \u2026`)))}function he(i){return i.rank!==null?l("rank",
i.rank):i.pid!==null?l("pid",i.pid):l("process")}function Be(i){let e=i.source.process;return e.marks.length===0?null:N(
"marks",l("marks"),S([l("time"),l("step"),l("name"),""],e.marks.slice(0,100).map(t=>[h("button.link",{type:"button",click:()=>ce(
i,t.time_ns-i.source.offset)},O(t.time_ns)),t.step===null?"-":String(t.step),t.name??"-",t.text]),[1]),e.mark_count>e.marks.
length&&h("p.faint",{},l("shown",e.marks.length,g(e.mark_count))))}var Ce=document.getElementById("page");function ue(i){try{return localStorage.getItem(`tidemark.${i}`)}catch{return null}}
function Pe(i,e){try{localStorage.setItem(`tidemark.${i}`,e)}catch{}}function Re(i){i==="light"||i==="dark"?document.documentElement.
dataset.theme=i:delete document.documentElement.dataset.theme}function ft(i){let e=i.source.report,t=i.source.process,s=h(
"input",{type:"search",placeholder:l("search"),"aria-label":l("search"),value:i.view.query}),n=0;s.addEventListener("inp\
ut",()=>{clearTimeout(n),n=window.setTimeout(()=>i.change({query:s.value.trim()}),120)});let r=h("select",{"aria-label":l(
"theme"),change:a=>{let c=a.target.value;Pe("theme",c),Re(c),i.change({})}},["auto","light","dark"].map(a=>h("option",{value:a,
selected:(ue("theme")??"auto")===a},l(`theme${a[0].toUpperCase()}${a.slice(1)}`)))),o=h("button",{type:"button",click:()=>{
let a=ge()==="en"?"zh":"en";Pe("language",a),oe(a),ze(i.source)}},l("language"));return h("header",{},h("a.skip",{href:"\
#overview"},l("skip")),h("div.name",{},h("h1",{},e.run.replace(/\/+$/,"").split("/").pop()??e.run),h("p.faint",{},[he(t),
t.host,t.command,l("started",e.started_utc)].filter(Boolean).join(" \xB7 "))),h("div.tools",{},s,r,o))}function bt(i){return h(
"nav",{"aria-label":l("overview")},i.map(e=>{let t=e.querySelector("h2")?.textContent??l("overview");return h("a",{href:`\
#${e.id}`,click:s=>{s.preventDefault(),e.scrollIntoView({block:"start"}),e.setAttribute("tabindex","-1"),e.focus({preventScroll:!0})}},
t)}))}function ze(i){let e=new te(i),t=i.process,n=[Ae(i),i.devices.length>0&&new Q(e).element,_e(e),i.drawn.peak&&new ee(
e).element,(t.leaks.length>0||t.steps.count>0)&&Le(i),$e(e),Oe(e),Fe(i),Te(i),Be(e),Ee(i)].filter(r=>r instanceof HTMLElement);
w(Ce,ft(e),bt(n),h("main",{},n),h("footer",{},l("madeBy",i.report.tidemark))),window.onhashchange=()=>{e.read(),e.change(
e.view)},document.documentElement.dataset.ready="1"}function vt(i){let e=i instanceof Error?i.message:String(i);w(Ce,h("\
p.verdict.bad",{role:"alert"},l("failed",typeof DecompressionStream>"u"?l("old"):e)))}async function yt(){let i=ue("lang\
uage")??navigator.language;oe(i.startsWith("zh")?"zh":"en"),Re(ue("theme")??"auto");let e=document.getElementById("data"),
{json:t,rest:s}=await me(e.textContent.trim());e.remove(),ze(new X(t,s))}yt().catch(vt);})();
