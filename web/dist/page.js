"use strict";(()=>{var j=class{constructor(e,t){this.places=e;this.bytes=t}made=new Map;get(e){let t=this.made.get(e);if(!t){let s=this.places[e];
t=s?Ne(this.bytes,s):new Float64Array(0),this.made.set(e,t)}return t}};function Ne(r,[e,,t,s]){let n=new Float64Array(t),
i=e,o=0;for(let a=0;a<t;a++){let c=0,u=1,m;do m=r[i++],c+=(m&127)*u,u*=128;while(m>127);s===1&&(o+=c%2===0?c/2:-(c+1)/2,
c=o),n[a]=c}return n}function De(r){let e=atob(r),t=new Uint8Array(e.length);for(let s=0;s<t.length;s++)t[s]=e.charCodeAt(
s);return t}function We(r){let e=new DataView(r.buffer,r.byteOffset).getUint32(0,!0);return{json:JSON.parse(new TextDecoder().
decode(r.subarray(4,4+e))),rest:r.subarray(4+e)}}async function ve(r){let e=new Blob([De(r)]).stream(),t=new Response(e.
pipeThrough(new DecompressionStream("deflate")));return We(new Uint8Array(await t.arrayBuffer()))}function re(r,e){e==null||e===!1||(Array.isArray(e)?e.forEach(t=>re(r,t)):r.append(e instanceof Node?e:String(e)))}function h(r,e={},...t){
let[s,...n]=r.split("."),i=document.createElement(s);n.length&&(i.className=n.join(" "));for(let[o,a]of Object.entries(e))
typeof a=="function"?i.addEventListener(o,a):a===!0?i.setAttribute(o,""):a!==void 0&&a!==!1&&i.setAttribute(o,String(a));
return re(i,t),i}function w(r,...e){r.replaceChildren(),re(r,e)}function S(r,e,t=[]){let s=n=>t.includes(n)?{class:"n"}:
{};return h("div.scroll",{},h("table",{},h("thead",{},h("tr",{},r.map((n,i)=>h("th",{scope:"col",...s(i)},n)))),h("tbody",
{},e.map(n=>h("tr",{},n.map((i,o)=>h("td",s(o),i)))))))}function D(r,e){let t=h("i");return t.style.width=`${Math.max(0,
Math.min(1,r))*100}%`,t.style.background=e,h("span.bar",{"aria-hidden":"true"},t)}function F(r){let e=h("i.swatch",{"ari\
a-hidden":"true"});return e.style.background=r,e}function L(r,e){let t=window.devicePixelRatio||1,s=r.parentElement.clientWidth,
n=Math.max(1,Math.round(s*t)),i=Math.max(1,Math.round(e*t));(r.width!==n||r.height!==i)&&(r.width=n,r.height=i,r.style.width=
`${s}px`,r.style.height=`${e}px`);let o=r.getContext("2d");return o.setTransform(t,0,0,t,0,0),o.clearRect(0,0,s,e),o}function T(r){
let e=!1;return()=>{e||(e=!0,requestAnimationFrame(()=>{e=!1,r()}))}}function y(r){return getComputedStyle(document.documentElement).
getPropertyValue(r).trim()}var V=[["parameter","#49b477"],["buffer","#a0580f"],["optimizer_state","#d9a420"],["gradient","#1a71e3"],["input","#1378\
85"],["activation","#d6604d"],["kv_cache","#5e6356"],["autograd_detail","#62b5e8"],["temporary","#764c9a"],["embedding",
"#2a6459"],["attention","#4a3fc0"],["mlp","#f7a88f"],["normalization","#d9a3ee"],["lora","#c51b7d"],["conv","#7a2f6b"],[
"expert","#7a2f1c"],["router","#f0d37a"],["(cuBLAS workspace)","#b47b80"],["(cuBLASLt workspace)","#c9b08a"],["head","#7\
fc06a"],["model_load","#49b477"],["data","#137885"],["wrap","#62b5e8"],["optimizer_setup","#7d5a1a"],["privacy_setup","#\
c51b7d"],["forward","#d6604d"],["backward","#1a71e3"],["privacy","#f7a88f"],["optimizer","#d9a420"],["eval","#764c9a"],[
"torch","#ee7a32"],["jax","#1a71e3"],["cupy","#764c9a"],["cublas","#137885"],["cudnn","#62b5e8"],["nccl","#49b477"],["us\
er","#c51b7d"],["other","#9aa0a6"],["unknown","#c4c7cc"]],$=["#4393c3","#e08214","#33a05c","#d6604d","#9970ab","#878787",
"#35978f","#c51b7d","#b8860b","#6a51a3"];var Ie=new Map(V),Ke=new Map(V.map(([r],e)=>[r,e]));function x(r){let e=Ie.get(r??"unknown");if(e)return e;let t=0;for(let s=0;s<
r.length;s++)t=Math.imul(31,t)+r.charCodeAt(s)>>>0;return $[t%$.length]}function be(r){return Ke.get(r??"unknown")??V.length}var qe={language:"\u4E2D\u6587",theme:"Theme",themeAuto:"System",themeLight:"Light",themeDark:"Dark",search:"Find a file\
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
Runs out of memory in about {0} steps.",best:"needs least",wasted:"Wasted",retries:"Retries",asRecorded:"as recorded",whatifHint:"\
Every allocation of {0}, replayed through a model of torch's caching allocator.",compare:"Compare with another moment",comparedWith:"\
compared with {0}",stopComparing:"Stop",change:"Change",next:"Next:",madeBy:"Made by tidemark {0}. This file needs no ne\
twork and sends nothing.",failed:"This page cannot be shown: {0}",old:"the browser is too old; any browser of 2023 or la\
ter will do"},Ue={language:"English",theme:"\u4E3B\u9898",themeAuto:"\u8DDF\u968F\u7CFB\u7EDF",themeLight:"\u6D45\u8272",
themeDark:"\u6DF1\u8272",search:"\u67E5\u627E\u6587\u4EF6\u3001\u51FD\u6570\u3001\u6A21\u5757\u6216\u5F20\u91CF",skip:"\u8DF3\
\u5230\u6B63\u6587",overview:"\u6982\u89C8",timeline:"\u663E\u5B58\u968F\u65F6\u95F4\u53D8\u5316",peak:"\u5DF2\u5206\u914D\u7684\u5185\u5BB9",
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
inSteps:"\u9884\u8BA1\u7EA6 {0} \u6B65\u540E\u663E\u5B58\u4E0D\u8DB3\u3002",best:"\u9700\u8981\u6700\u5C11",wasted:"\u6D6A\u8D39",
retries:"\u91CD\u8BD5",asRecorded:"\u8BB0\u5F55\u65F6\u7684\u8BBE\u7F6E",whatifHint:"{0} \u7684\u6BCF\u6B21\u5206\u914D\uFF0C\u7ECF torch \u7F13\u5B58\u5206\u914D\u5668\u7684\u6A21\u578B\u91CD\u653E\u3002",
compare:"\u4E0E\u53E6\u4E00\u65F6\u523B\u6BD4\u8F83",comparedWith:"\u4E0E{0}\u6BD4\u8F83",stopComparing:"\u505C\u6B62\u6BD4\u8F83",
change:"\u53D8\u5316",next:"\u4E0B\u4E00\u6B65\uFF1A",madeBy:"\u7531 tidemark {0} \u751F\u6210\u3002\u6B64\u6587\u4EF6\u4E0D\u9700\u8981\u7F51\u7EDC\uFF0C\u4E5F\u4E0D\u53D1\u9001\u4EFB\u4F55\u5185\u5BB9\u3002",
failed:"\u65E0\u6CD5\u663E\u793A\u6B64\u9875\u9762\uFF1A{0}",old:"\u6D4F\u89C8\u5668\u8FC7\u65E7\uFF1B\u8BF7\u4F7F\u7528 2023 \u5E74\u6216\u66F4\u65B0\u7684\u6D4F\u89C8\u5668"},
oe="en";function ae(r){oe=r,document.documentElement.lang=r==="zh"?"zh-CN":"en"}function Y(){return oe}function l(r,...e){
return(oe==="zh"?Ue:qe)[r].replace(/\{(\d)\}/g,(s,n)=>String(e[Number(n)]??"-"))}var H=["category","module","component","stage"],X=class{constructor(e,t){this.page=e;this.drawn=e.drawn,this.columns=new j(
e.drawn.columns,t),this.blocks=this.readBlocks(),this.peakRows=this.readPeak();let s=this.column("stacks.n");this.frameStarts=
new Float64Array(s.length+1);for(let n=0;n<s.length;n++)this.frameStarts[n+1]=this.frameStarts[n]+s[n]}drawn;blocks;peakRows;columns;levels=new Map;frameStarts;get report(){
return Y()==="zh"?this.page.report_zh:this.page.report}get process(){return this.report.processes[this.report.chosen]}get whatif(){
return this.page.whatif}get devices(){return this.drawn.timeline.devices}get start(){return 0}get end(){return Math.max(
1,this.drawn.timeline.end_ns)}get offset(){return this.drawn.timeline.offset_ns}column(e){return this.columns.get(e)}text(e){
return e>0?this.drawn.strings[e-1]:null}keysOf(e){return{category:this.column(`${e}.category`),module:this.column(`${e}.\
module`),component:this.column(`${e}.component`),stage:this.column(`${e}.stage`)}}readBlocks(){let e=this.column("blocks\
.alloc"),t=this.column("blocks.life"),s=new Float64Array(e.length);for(let n=0;n<s.length;n++)s[n]=t[n]>0?e[n]+t[n]-1:1/0;
return{n:e.length,alloc:e,free:s,size:this.column("blocks.size"),address:this.column("blocks.address"),step:this.column(
"blocks.step"),stack:this.column("blocks.stack"),tensor:this.column("blocks.tensor"),device:this.column("blocks.device"),
keys:this.keysOf("blocks")}}readPeak(){let e=this.column("peak.bytes");return{n:e.length,bytes:e,blocks:this.column("pea\
k.blocks"),stack:this.column("peak.stack"),tensor:this.column("peak.tensor"),keys:this.keysOf("peak")}}frames(e){if(!(e>
0))return[];let t=[],s=this.column("stacks.frames");for(let n=this.frameStarts[e-1];n<this.frameStarts[e];n++)t.push(this.
frame(s[n]-1));return t}frame(e){return{file:this.text(this.column("frames.file")[e]),function:this.text(this.column("fr\
ames.function")[e]),line:this.column("frames.line")[e],kind:this.column("frames.kind")[e],source:this.text(this.column("\
frames.source")[e])}}hasAll(e,t){let{window_start_ns:s,window_end_ns:n}=this.drawn.blocks;return s!==null&&n!==null&&this.
drawn.timeline.known_ns<=e&&s<=Math.max(0,e)&&n>=Math.min(t,this.end)}levelsOf(e){let t=this.levels.get(e);if(!t){for(t=
[this.finest(e)];t[t.length-1].n>1;)t.push(je(t[t.length-1]));this.levels.set(e,t)}return t}finest(e){let t=this.drawn.timeline.
bins;return{n:t,width:this.end/t,best:Int32Array.from({length:t},(s,n)=>n),max:this.column(`bins.${e}.max`),min:this.column(
`bins.${e}.min`),reserved:this.column(`bins.${e}.reserved`),used:this.column(`bins.${e}.used`)}}bins(e,t,s,n,i){let o=this.
levelsOf(e),a=(s-t)/Math.max(1,n),c=o[0];for(let u of o)u.width<=a*1.01&&(c=u);return c===o[0]&&c.width>a&&this.hasAll(t,
s)?this.exactBins(e,t,s,n,i):this.cut(e,c,t,s,i)}layersOf(e,t){return this.drawn.timeline.layers.filter(n=>n.device===e&&
n.by===t).map(n=>({key:{key:n.key,others:n.others},column:this.column(n.column)})).sort((n,i)=>ye(n.key,t)-ye(i.key,t))}cut(e,t,s,n,i){
let o=O(Math.floor(s/t.width),0,t.n-1),a=O(Math.ceil(n/t.width),o+1,t.n),c=this.layersOf(e,i),u=this.column(`bins.${e}.a\
t`),m=a-o,d=f=>{let b=new Float64Array(m);for(let k=0;k<m;k++)b[k]=f[t.best[o+k]];return b};return{start:o*t.width,width:t.
width,n:m,exact:!1,max:t.max.subarray(o,a),min:t.min.subarray(o,a),at:d(u),reserved:t.reserved.subarray(o,a),used:t.used.
subarray(o,a),keys:c.map(f=>f.key),layers:c.map(f=>d(f.column))}}exactBins(e,t,s,n,i){let o=this.layersOf(e,i),a=o.map(b=>b.
key.key),c=this.cut(e,this.levelsOf(e)[0],t,s,i),u=Math.max(1,Math.round(n)),m=(s-t)/u,d=new le(this,e,i,a,o.findIndex(b=>b.
key.others>0)),f={start:t,width:m,n:u,exact:!0,max:new Float64Array(u),min:new Float64Array(u),at:new Float64Array(u),reserved:new Float64Array(
u),used:new Float64Array(u),keys:o.map(b=>b.key),layers:o.map(()=>new Float64Array(u))};d.fill(f);for(let b=0;b<u;b++){let k=O(
Math.floor((t+b*m-c.start)/c.width),0,c.n-1);f.reserved[b]=c.reserved[k],f.used[b]=c.used[k]}return f}};function je(r){let e=Math.
ceil(r.n/2),t={n:e,width:r.width*2,max:new Float64Array(e),min:new Float64Array(e),best:new Int32Array(e),reserved:new Float64Array(
e),used:new Float64Array(e)};for(let s=0;s<e;s++){let n=2*s,i=Math.min(2*s+1,r.n-1),o=r.max[i]>r.max[n]?i:n;t.max[s]=r.max[o],
t.best[s]=r.best[o],t.min[s]=Math.min(r.min[n],r.min[i]),t.reserved[s]=Math.max(r.reserved[n],r.reserved[i]),t.used[s]=Math.
max(r.used[n],r.used[i])}return t}function ye(r,e){return r.others>0?2e3:e==="module"?0:be(r.key)}var le=class{layer;changes=[];constructor(e,t,s,n,i){
let o=e.blocks,a=o.keys[s],c=i<0?0:i,u=new Map(n.map((m,d)=>[m,d]));this.layer=new Int16Array(o.n).fill(-1);for(let m=0;m<
o.n;m++)o.device[m]===t&&(this.layer[m]=u.get(e.text(a[m]))??c);this.source=e}source;gather(e,t,s){let n=this.source.blocks,
i=0;for(let o=0;o<n.n&&n.alloc[o]<=t;o++)this.layer[o]<0||n.free[o]<e||(n.alloc[o]<e?(s[this.layer[o]]+=n.size[o],i+=n.size[o]):
this.changes.push({ns:n.alloc[o],block:o,isFree:!1}),n.free[o]<=t&&this.changes.push({ns:n.free[o],block:o,isFree:!0}));
return this.changes.sort((o,a)=>o.ns-a.ns||Number(a.isFree)-Number(o.isFree)),i}fill(e){let t=this.source.blocks,s=new Float64Array(
e.layers.length),n=e.start+e.n*e.width,i=this.gather(e.start,n,s),o=0;for(let a=0;a<e.n;a++){let c=a+1===e.n?1/0:e.start+
(a+1)*e.width;for(e.max[a]=e.min[a]=i,e.at[a]=e.start+a*e.width,s.forEach((u,m)=>{e.layers[m][a]=u});o<this.changes.length&&
this.changes[o].ns<c;o++){let u=this.changes[o],m=u.isFree?-t.size[u.block]:t.size[u.block];if(i+=m,s[this.layer[u.block]]+=
m,i<e.min[a]&&(e.min[a]=i),!(i<=e.max[a])){e.max[a]=i,e.at[a]=u.ns;for(let d=0;d<s.length;d++)e.layers[d][a]=s[d]}}}}};function G(r,e){
let t=r.report.explain?.ooms.find(n=>n.device===e)?.evidence.limit;if(typeof t=="number")return t;let s=r.process;return s.
ooms.find(n=>n.device===e&&n.capacity)?.capacity??s.accounting.find(n=>n.device===e&&n.total)?.total??null}function O(r,e,t){
return r<e?e:r>t?t:r}var ge=["B","KiB","MiB","GiB","TiB","PiB"];function p(r){if(r==null)return"-";let e=0,t=Math.abs(r);for(;t>=1023.95&&e<ge.
length-1;)t/=1024,e++;let s=e===0?0:e>=3?2:1;return`${r<0?"-":""}${t.toFixed(s)} ${ge[e]}`}function Z(r){return r==null?
"-":r<1024?`${r} B`:`${p(r)} (${g(r)} B)`}function g(r){return r==null?"-":Math.round(r).toLocaleString("en-US")}function E(r,e){
if(!(e>0))return"-";let t=100*r/e;return t>0&&t<1?"<1 %":`${Math.round(t)} %`}function B(r){if(r==null)return"-";if(r<1e3)
return`${r.toFixed(0)} ns`;if(r<1e6)return`${(r/1e3).toFixed(2)} \xB5s`;if(r<1e9)return`${(r/1e6).toFixed(2)} ms`;if(r<12e10)
return`${(r/1e9).toFixed(2)} s`;let e=Math.round(r/1e9),t=Math.floor(e/60);return t<60?`${t} min ${e%60} s`:`${Math.floor(
t/60)} h ${t%60} min`}function A(r,e,t=r){let[s,n]=t>=1e9?["s",1e9]:t>=1e6?["ms",1e6]:t>=1e3?["\xB5s",1e3]:["ns",1],i=Math.
max(0,Math.min(9,Math.ceil(-Math.log10(Math.max(1,e)/n)-1e-9)));return`${(r/n).toFixed(i)} ${s}`}function _(r){return A(
r,r>=1e9?1e6:r>=1e6?1e4:10)}function W(r,e){let t=r/Math.max(1,e),s=10**Math.floor(Math.log10(t)),n=t/s;return s*(n<=1?1:
n<=2?2:n<=5?5:10)}function J(r,e){return 2**Math.max(0,Math.ceil(Math.log2(Math.max(1,r/Math.max(1,e)))))}function we(r,e=2){
let t=r.split("/");return t.length<=e?r:t.slice(-e).join("/")}function P(r){return r.find(e=>e.kind===0)??r.find(e=>e.kind===1)??r[0]??null}function C(r){return r?r.file?`${r.file}${r.
line?`:${r.line}`:""}${r.function?` ${r.function}`:""}`:r.function??"?":"?"}function ce(r,e,t){let s=r.blocks,n=[];for(let o=0;o<
s.n&&s.alloc[o]<=t;o++)s.free[o]>t&&s.device[o]===e&&n.push(o);let i=o=>Float64Array.from(n,a=>o[a]);return{n:n.length,bytes:i(
s.size),blocks:new Float64Array(n.length).fill(1),stack:i(s.stack),tensor:i(s.tensor),keys:{category:i(s.keys.category),
module:i(s.keys.module),component:i(s.keys.component),stage:i(s.keys.stage)}}}function Q(r,e,t,s){let n=new Map,i=new Map,
o=a=>{let c=i.get(a);return c===void 0&&(c=a>0?C(P(r.frames(a))):null,i.set(a,c)),c};for(let a=0;a<e.n;a++){if(s&&!s(a))
continue;let c=t==="line"?o(e.stack[a]):r.text(t==="tensor"?e.tensor[a]:e.keys[t][a]),u=n.get(c);u||n.set(c,u={key:c,bytes:0,
blocks:0,stack:e.stack[a]}),u.bytes+=e.bytes[a],u.blocks+=e.blocks[a]}return[...n.values()].sort((a,c)=>c.bytes-a.bytes||
Ve(a.key,c.key))}function Ve(r,e){return r===null||e===null?+(r===null)-+(e===null):r<e?-1:r>e?1:0}var N=class{constructor(e,t){
this.source=e;this.query=t.toLowerCase()}texts=new Map;stacks=new Map;query;has(e){return e!==null&&e.toLowerCase().includes(
this.query)}text(e){let t=this.texts.get(e);return t===void 0&&this.texts.set(e,t=this.has(this.source.text(e))),t}stack(e){
let t=this.stacks.get(e);return t===void 0&&(t=this.source.frames(e).some(s=>this.has(s.file)||this.has(s.function)||this.
has(C(s))),this.stacks.set(e,t)),t}row(e,t){return this.text(e.tensor[t])||this.text(e.keys.module[t])||this.stack(e.stack[t])}};var I=20,Ye=40;function ke(r,e,t,s){return{name:r,kind:e,bytes:0,matches:!1,parent:t,children:new Map,source:s}}function Xe(r,e,t,s){
let n=r;n.bytes+=t;for(let[i,o,a]of e){let c=n.children.get(i);c||n.children.set(i,c=ke(i,o,n,a)),c.bytes+=t,c.matches||=
s,n=c}}function Ge(r,e,t,s,n){let i=ke(l("total"),3,null,null),o=n?new N(r,n):null,a=new Map,c=u=>{let m=a.get(u);return m||
(m=r.frames(u).filter(d=>!s||d.kind===0).reverse().slice(0,Ye).map(d=>[C(d),d.kind,d.source]),m.length===0&&(m=[[l("noSt\
ack"),2,null]]),a.set(u,m)),m};for(let u=0;u<e.n;u++){let m=t?(r.text(e.keys.module[u])?.split(".")??[l("unknown")]).map(
d=>[d,4,null]):c(e.stack[u]);Xe(i,m,e.bytes[u],o!==null&&o.row(e,u))}return i}var ee=class{constructor(e){this.state=e;let t=h(
"div.plot",{},this.canvas,this.tip);this.element=h("div",{},this.tools,t,this.way),this.fillTools(),this.canvas.addEventListener(
"click",s=>this.open(this.boxAt(s))),this.canvas.addEventListener("pointermove",s=>this.point(s)),this.canvas.addEventListener(
"pointerleave",()=>{this.tip.hidden=!0}),this.canvas.addEventListener("keydown",s=>this.key(s)),new ResizeObserver(this.
redraw).observe(t)}element;canvas=h("canvas",{tabindex:0,role:"img","data-plot":"icicle"});tip=h("div.tip",{hidden:!0});tools=h(
"div.tools");way=h("p.faint.note",{"aria-live":"polite"});boxes=[];root;top;rows=null;byModule=!1;ownOnly=!1;redraw=T(()=>this.
draw());show(e){this.rows=e,this.root=Ge(this.state.source,e,this.byModule,this.ownOnly,this.state.view.query),this.top=
this.root,this.redraw()}fillTools(){let e=(t,s,n)=>h("button",{type:"button","aria-pressed":String(s),click:()=>{n(),this.
fillTools(),this.rows&&this.show(this.rows)}},t);w(this.tools,h("div.choices",{role:"group","aria-label":l("icicle")},e(
l("icicleStack"),!this.byModule,()=>{this.byModule=!1}),e(l("icicleModule"),this.byModule,()=>{this.byModule=!0})),!this.
byModule&&h("div.choices",{role:"group"},e(l("allFrames"),!this.ownOnly,()=>{this.ownOnly=!1}),e(l("ownFrames"),this.ownOnly,
()=>{this.ownOnly=!0})))}key(e){let t=[...this.top.children.values()].sort((o,a)=>a.bytes-o.bytes),s=this.top.parent?[...this.
top.parent.children.values()].sort((o,a)=>a.bytes-o.bytes):[this.top],n=s.indexOf(this.top),i={Escape:this.top.parent,Backspace:this.
top.parent,ArrowUp:this.top.parent,ArrowDown:t[0],Enter:t[0],ArrowRight:s[n+1],ArrowLeft:s[n-1],Home:this.root};e.key in
i&&(e.preventDefault(),this.open(i[e.key]??null))}open(e){e&&(this.top=e===this.top&&e.parent?e.parent:e,this.redraw())}boxAt(e){
let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top;return this.boxes.find(i=>s>=i.x&&s<i.x+i.
w&&n>=i.y&&n<i.y+I)?.node??null}point(e){let t=this.boxAt(e),s=this.canvas.getBoundingClientRect();if(this.tip.hidden=t===
null,!t)return;w(this.tip,h("b",{},t.name),t.source&&h("code.source",{},t.source),h("div.row",{},h("span",{},l("size")),
h("b",{},p(t.bytes))),h("div.row",{},h("span",{},l("share")),h("span",{},E(t.bytes,this.root.bytes))));let n=e.clientX-s.
left,i=n>s.width/2;this.tip.style.left=i?"":`${n+14}px`,this.tip.style.right=i?`${s.width-n+14}px`:"",this.tip.style.top=
`${e.clientY-s.top+16}px`}layOut(e){this.boxes=[];let t=[];for(let i=this.top.parent;i;i=i.parent)t.unshift(i);t.forEach(
(i,o)=>this.boxes.push({node:i,x:0,y:o*I,w:e}));let s=t.length,n=(i,o,a,c)=>{s=Math.max(s,c),this.boxes.push({node:i,x:o,
y:c*I,w:a});let u=o;for(let m of[...i.children.values()].sort((d,f)=>f.bytes-d.bytes)){let d=a*m.bytes/i.bytes;d>=1&&n(m,
u,d,c+1),u+=d}};return this.top.bytes>0&&n(this.top,0,e,t.length),(s+1)*I}colour(e){return e.kind===3?y("--rest"):e.kind===
4?e.name===l("unknown")?y("--rest"):Je(e.name):`color-mix(in srgb, ${y(e.kind===0?"--own":e.kind===1?"--library":"--inne\
r")} ${100-Ze(e.name)}%, #000)`}draw(){if(!this.element.isConnected||!this.root)return;let e=this.canvas.parentElement.clientWidth,
t=this.layOut(e),s=L(this.canvas,t),n=this.state.view.query;s.font="12px system-ui, sans-serif",s.textBaseline="middle";
for(let i of this.boxes)s.globalAlpha=n&&i.node.kind!==3&&!i.node.matches?.3:1,s.fillStyle=this.colour(i.node),s.fillRect(
i.x,i.y,Math.max(1,i.w-1),I-1),!(i.w<34)&&(s.fillStyle=i.node.kind===3?y("--text"):"#fff",s.fillText(et(s,`${Qe(i.node)}\
  ${p(i.node.bytes)}`,i.w-10),i.x+5,i.y+I/2));s.globalAlpha=1,this.canvas.setAttribute("aria-label",`${l("icicle")}: ${this.
top.name}, ${p(this.top.bytes)}. `+[...this.top.children.values()].sort((i,o)=>o.bytes-i.bytes).slice(0,5).map(i=>`${i.name}\
 ${p(i.bytes)}`).join("; ")),w(this.way,l("icicleHint"))}};function Ze(r){let e=0;for(let t=0;t<r.length;t++)e=Math.imul(
31,e)+r.charCodeAt(t)>>>0;return e%4*8}function Je(r){return`color-mix(in srgb, ${x(r)} 78%, #000)`}function Qe(r){if(r.
kind>2)return r.name;let[e,...t]=r.name.split(" "),s=t.join(" "),n=e.slice(e.lastIndexOf("/")+1);return s?`${s}  ${n}`:n}
function et(r,e,t){if(r.measureText(e).width<=t)return e;let s=0,n=e.length;for(;s<n;){let i=s+n+1>>1;r.measureText(`${e.
slice(0,i)}\u2026`).width<=t?s=i:n=i-1}return s>1?`${e.slice(0,s)}\u2026`:""}function tt(r,e,t,s,n){let i=[];for(let a=0;a<r.n&&r.alloc[a]<=s;a++){if(r.free[a]<t||r.device[a]!==e)continue;let c=Math.
min(r.free[a],s)-Math.max(r.alloc[a],t);i.push({block:a,area:r.size[a]*Math.max(c,(s-t)/4e3)})}i.sort((a,c)=>c.area-a.area);
let o=i.slice(0,n).map(a=>a.block).sort((a,c)=>a-c);return{chosen:o,hidden:i.length-o.length}}function xe(r,e,t,s,n=1200){
let{chosen:i,hidden:o}=tt(r,e,t,s,n),a=i.flatMap((u,m)=>[{ns:Math.max(r.alloc[u],t),i:m,isFree:!1},...r.free[u]<s?[{ns:r.
free[u],i:m,isFree:!0}]:[]]);a.sort((u,m)=>u.ns-m.ns||Number(m.isFree)-Number(u.isFree)||u.i-m.i);let c=i.map(u=>({block:u,
from:Math.max(r.alloc[u],t),to:Math.min(r.free[u],s),times:[],levels:[]}));return{strips:c,hidden:o,top:st(r,c,a)}}function st(r,e,t){
let s=[],n=0,i=0;for(let o of t){let a=r.size[e[o.i].block];if(!o.isFree){e[o.i].times.push(o.ns),e[o.i].levels.push(n),
s.push(o.i),n+=a,i=Math.max(i,n);continue}let c=s.indexOf(o.i);if(!(c<0)){s.splice(c,1),n-=a;for(let u=c;u<s.length;u++){
let m=e[s[u]],d=m.levels[m.levels.length-1]-a;m.times[m.times.length-1]===o.ns?m.levels[m.levels.length-1]=d:(m.times.push(
o.ns),m.levels.push(d))}}}return i}function he(r,e,t,s){for(let n of e.strips){if(t<n.from||t>n.to)continue;let i=n.times.
length-1;for(;i>0&&n.times[i]>t;)i--;if(s>=n.levels[i]&&s<n.levels[i]+r.size[n.block])return n}return null}var Me=14,v={left:70,right:10,top:18,bottom:24};function nt(r,e){let t=0;return r.map(s=>{if(s.others>0)return x("other");
if(s.key===null||e!=="module")return x(s.key);let n=t++,i=$[n%$.length];return n<$.length?i:`color-mix(in srgb, ${i} 55%\
, ${n%20<10?"#fff":"#000"})`})}function K(r){return r.others>0?l("others",g(r.others)):r.key??l("unknown")}var te=class{constructor(e){
this.state=e;this.source=e.source;let t=h("div.plot",{},this.canvas,this.overlay,this.tip);this.element=h("section",{id:"\
timeline"},h("h2",{},l("timeline")),this.tools,this.legend,t,h("div.plot",{},this.overview),this.chosen,this.note,this.values),
this.listen(t),this.fillTools(),e.listen(s=>{("by"in s||"strips"in s||"device"in s)&&this.fillTools(),this.redraw()}),new ResizeObserver(
this.redraw).observe(t)}element;canvas=h("canvas",{tabindex:0,role:"img","data-plot":"timeline"});overlay=h("canvas.over\
lay",{"aria-hidden":"true"});overview=h("canvas.overview",{"aria-hidden":"true"});tip=h("div.tip",{hidden:!0});legend=h(
"div.legend");tools=h("div.tools");note=h("p.faint.note");chosen=h("div.chosen",{hidden:!0,"aria-live":"polite"});values=h(
"details",{toggle:()=>this.fillValues()});bins;colours=[];strips=null;top=1;hover=null;redraw=T(()=>this.draw());rehover=T(
()=>this.drawHover());source;fillTools(){let e=this.state.view,t=this.state,s=(a,c,u)=>h("button",{type:"button","aria-p\
ressed":String(c),click:u},a),n=h("div.choices",{role:"group","aria-label":l("by")},H.map(a=>s(l(a),e.by===a&&!e.strips,
()=>t.change({by:a,strips:!1}))),s(l("blocks"),e.strips,()=>t.change({strips:!0}))),i=this.source.devices.length<2?null:
h("select",{"aria-label":l("deviceLabel"),change:a=>t.change({device:a.target.selectedIndex})},this.source.devices.map((a,c)=>h(
"option",{selected:c===e.device},a))),o=(a,c,u)=>h("button",{type:"button","aria-label":a,title:a,click:u},c);w(this.tools,
n,i,h("div.choices",{role:"group"},o(l("zoomIn"),"+",()=>this.zoom(.5)),o(l("zoomOut"),"\u2212",()=>this.zoom(2)),o(l("l\
eft"),"\u2190",()=>this.pan(-.3)),o(l("right"),"\u2192",()=>this.pan(.3)),o(l("toPeak"),l("toPeak"),()=>this.toPeak()),o(
l("all"),l("all"),()=>t.change({from:this.source.start,to:this.source.end}))))}toPeak(){let e=this.source.drawn.peak,t=this.
source.drawn.blocks;if(!e)return;let s=t.window_start_ns!==null&&t.window_end_ns!==null&&t.window_end_ns-t.window_start_ns<
this.source.end*.9,n=this.source.end/100;this.state.change({from:s?t.window_start_ns:e.time_ns-n,to:s?t.window_end_ns:e.
time_ns+n,device:e.device,cursor:null})}zoom(e,t){let{from:s,to:n}=this.state.view,i=t??(s+n)/2;this.state.change({from:i-
(i-s)*e,to:i+(n-i)*e})}pan(e){let{from:t,to:s}=this.state.view,n=(s-t)*e;this.state.change({from:t+n,to:s+n})}listen(e){
let t=new Map,s=0,n=null,i=o=>o.clientX-e.getBoundingClientRect().left;e.addEventListener("pointerdown",o=>{t.set(o.pointerId,
i(o)),s=0,n=o.shiftKey?i(o):null,e.setPointerCapture(o.pointerId)}),e.addEventListener("pointermove",o=>{this.hover={x:i(
o),y:o.clientY-e.getBoundingClientRect().top};let a=t.get(o.pointerId);a!==void 0&&(s+=Math.abs(i(o)-a),t.size===2?this.
pinch(t,o.pointerId,i(o)):n===null&&this.pan((a-i(o))/this.plotWidth()),t.set(o.pointerId,i(o))),this.brush=n,this.rehover()}),
e.addEventListener("pointerup",o=>{n!==null&&Math.abs(i(o)-n)>4?this.state.change({from:this.timeAt(Math.min(i(o),n)),to:this.
timeAt(Math.max(i(o),n))}):t.size===1&&s<5&&this.look(i(o),o.clientY-e.getBoundingClientRect().top),t.delete(o.pointerId),
n=this.brush=null}),e.addEventListener("pointercancel",o=>t.delete(o.pointerId)),e.addEventListener("pointerleave",()=>{
this.hover=null,this.rehover()}),e.addEventListener("dblclick",()=>this.state.change({from:this.source.start,to:this.source.
end})),e.addEventListener("wheel",o=>this.wheel(o,i(o)),{passive:!1}),this.canvas.addEventListener("keydown",o=>this.key(
o)),this.listenOverview()}brush=null;wheel(e,t){let s=e.shiftKey||Math.abs(e.deltaX)>Math.abs(e.deltaY);!s&&e.deltaY>0&&
this.state.isWhole||(e.preventDefault(),s?this.pan((e.deltaX||e.deltaY)/this.plotWidth()):this.zoom(Math.exp(O(e.deltaY,
-200,200)/300),this.timeAt(t)))}pinch(e,t,s){let n=[...e].find(([c])=>c!==t)[1],i=e.get(t),o=Math.abs(i-n),a=Math.abs(s-
n);o>10&&a>10&&this.zoom(o/a,this.timeAt((s+n)/2))}key(e){let{from:t,to:s,cursor:n}=this.state.view,o={"+":()=>this.zoom(
.6),"=":()=>this.zoom(.6),"-":()=>this.zoom(1/.6),0:()=>this.state.change({from:this.source.start,to:this.source.end}),Home:()=>this.
state.change({from:this.source.start,to:this.source.end}),p:()=>this.toPeak(),b:()=>this.state.change({strips:!this.state.
view.strips}),Escape:()=>this.state.change({cursor:null}),ArrowLeft:()=>e.shiftKey?this.moveCursor(-1):this.pan(-.1),ArrowRight:()=>e.
shiftKey?this.moveCursor(1):this.pan(.1),Enter:()=>this.look(this.xOf(n??(t+s)/2))}[e.key];!o||e.ctrlKey||e.metaKey||e.altKey||
(e.preventDefault(),o())}moveCursor(e){let{from:t,to:s,cursor:n}=this.state.view,i=(s-t)/this.plotWidth()*4;this.state.change(
{cursor:O((n??(t+s)/2)+e*i,t,s)})}look(e,t=-1){if(e<v.left)return;let s=this.strips?he(this.source.blocks,this.strips,this.
timeAt(e),this.levelAt(t)):null;this.chosen.hidden=s===null,s&&w(this.chosen,this.blockTip(s.block),this.wholeStack(s.block));
let n=this.timeAt(e),i=this.binAt(n);this.state.change({cursor:this.bins.exact||this.state.view.strips?n:this.bins.at[i]})}listenOverview(){
let e=!1,t=s=>{let n=this.overview.getBoundingClientRect(),{from:i,to:o}=this.state.view,a=(s.clientX-n.left-v.left)/(n.
width-v.left-v.right)*this.source.end;this.state.change({from:a-(o-i)/2,to:a+(o-i)/2})};this.overview.addEventListener("\
pointerdown",s=>{e=!0,this.overview.setPointerCapture(s.pointerId),t(s)}),this.overview.addEventListener("pointermove",s=>{
e&&t(s)}),this.overview.addEventListener("pointerup",()=>{e=!1})}get height(){return window.innerWidth<600?240:300}plotWidth(){
return Math.max(50,this.canvas.parentElement.clientWidth-v.left-v.right)}plotHeight(){return this.height-v.top-v.bottom}timeAt(e){
let{from:t,to:s}=this.state.view;return t+O((e-v.left)/this.plotWidth(),0,1)*(s-t)}xOf(e){let{from:t,to:s}=this.state.view;
return v.left+(e-t)/(s-t)*this.plotWidth()}levelAt(e){return(1-(e-v.top)/this.plotHeight())*this.top}yOf(e){return v.top+
(1-e/this.top)*this.plotHeight()}binAt(e){return O(Math.floor((e-this.bins.start)/this.bins.width),0,this.bins.n-1)}limit(){
return G(this.source,this.source.devices[this.state.view.device])}read(){let e=this.state.view;this.bins=this.source.bins(
e.device,e.from,e.to,this.plotWidth(),e.by),this.colours=nt(this.bins.keys,e.by),this.strips=e.strips?xe(this.source.blocks,
e.device,e.from,e.to):null;let t=1;for(let n=0;n<this.bins.n;n++)t=Math.max(t,this.bins.max[n],this.bins.reserved[n]-1,this.
bins.used[n]-1);let s=this.limit();s!==null&&s<=t*1.6&&(t=Math.max(t,s)),this.top=t*1.04}draw(){if(!this.element.isConnected||
this.source.devices.length===0)return;this.read();let e=L(this.canvas,this.height);this.drawGrid(e),e.save(),e.beginPath(),
e.rect(v.left,v.top,this.plotWidth(),this.plotHeight()),e.clip(),this.strips?this.drawStrips(e,this.strips):this.drawLayers(
e),this.drawLines(e),e.restore(),this.drawMarks(e),this.drawOverview(),this.drawHover(),this.tellSoon()}tellSoon(){let e=performance.
now();if(clearTimeout(this.timer),e-this.told<200){this.timer=window.setTimeout(()=>this.tellSoon(),200);return}this.told=
e,this.fillLegend(),this.describe()}told=-1/0;timer=0;drawGrid(e){let{from:t,to:s}=this.state.view,n=this.plotWidth(),i=this.
plotHeight();e.font="11px system-ui, sans-serif",e.strokeStyle=y("--grid"),e.fillStyle=y("--faint"),e.lineWidth=1,e.textAlign=
"right",e.textBaseline="middle";let o=J(this.top,5);for(let u=0;u<=this.top;u+=o){let m=Math.round(this.yOf(u))+.5;R(e,v.
left,m,v.left+n,m),e.fillText(p(u),v.left-6,m)}e.textAlign="center",e.textBaseline="top";let a=W(s-t,n/85),c=this.source.
offset;for(let u=Math.ceil((t+c)/a)*a;u<=s+c;u+=a){let m=Math.round(this.xOf(u-c))+.5;R(e,m,v.top+i,m,v.top+i+4),e.fillText(
A(u,a,s+c),O(m,v.left+20,v.left+n-24),v.top+i+7)}this.drawSteps(e)}drawSteps(e){let t=this.source.column("steps.start"),
s=this.source.column("steps.step"),{from:n,to:i}=this.state.view,o=ue(t,n),a=ue(t,i);if(a-o>this.plotWidth())return;let c=this.
source.process.ooms.map(u=>this.xOf(u.time_ns-this.source.offset));e.textAlign="left",e.textBaseline="bottom";for(let u=o,
m=-1/0,d=-1/0;u<a;u++){let f=Math.round(this.xOf(t[u]))+.5,b=u+1<t.length?this.xOf(t[u+1]):1/0;f-m<12||b-f<12||(R(e,f,v.
top-4,f,v.top+this.plotHeight()),m=f,!(f-d<60||b-f<40||f>v.left+this.plotWidth()-50||c.some(k=>Math.abs(k-f-25)<45))&&(e.
fillText(`${l("step")} ${s[u]}`,f+3,v.top),d=f))}}drawLayers(e){let t=this.bins,s=t.n,n=new Float64Array(s),i=new Float64Array(
s+1);for(let o=0;o<=s;o++)i[o]=this.xOf(t.start+o*t.width);t.layers.forEach((o,a)=>{e.fillStyle=this.colours[a],e.beginPath();
for(let c=0;c<s;c++){let u=this.yOf(n[c]+o[c]);e.lineTo(i[c],u),e.lineTo(i[c+1],u)}for(let c=s-1;c>=0;c--){let u=this.yOf(
n[c]);e.lineTo(i[c+1],u),e.lineTo(i[c],u)}e.fill();for(let c=0;c<s;c++)n[c]+=o[c]})}drawStrips(e,t){let s=this.source.blocks,
n=this.state.view.by,i=s.keys[n],o=new Map(this.bins.keys.map((c,u)=>[c.others?"\0":c.key,this.colours[u]])),a=this.state.
view.query?new N(this.source,this.state.view.query):null;this.fillTotal(e,y("--rest")),e.lineWidth=.5,e.strokeStyle=y("-\
-surface");for(let c of t.strips){let u=this.source.text(i[c.block]);e.globalAlpha=a&&!a.row(s,c.block)?.15:1,e.fillStyle=
o.get(u)??o.get("\0")??x(u),this.stripPath(e,c),e.fill(),s.size[c.block]/this.top*this.plotHeight()>5&&e.stroke()}e.globalAlpha=
1}stripPath(e,t){let s=this.source.blocks.size[t.block];e.beginPath();for(let n=0;n<t.times.length;n++){let i=this.yOf(t.
levels[n]);e.lineTo(this.xOf(t.times[n]),i),e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),i)}for(let n=t.times.
length-1;n>=0;n--){let i=this.yOf(t.levels[n]+s);e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),i),e.lineTo(this.
xOf(t.times[n]),i)}e.closePath()}fillTotal(e,t){let s=this.bins;e.fillStyle=t,e.beginPath(),e.moveTo(this.xOf(s.start),this.
yOf(0));for(let n=0;n<s.n;n++)e.lineTo(this.xOf(s.start+n*s.width),this.yOf(s.max[n])),e.lineTo(this.xOf(s.start+(n+1)*s.
width),this.yOf(s.max[n]));e.lineTo(this.xOf(s.start+s.n*s.width),this.yOf(0)),e.fill()}series(e,t,s){let n=this.bins;e.
beginPath();let i=!1;for(let o=0;o<n.n;o++){if(t[o]-s<0){i=!1;continue}let a=this.xOf(n.start+o*n.width),c=this.yOf(t[o]-
s);i?e.lineTo(a,c):e.moveTo(a,c),e.lineTo(this.xOf(n.start+(o+1)*n.width),c),i=!0}e.stroke()}drawLines(e){e.lineWidth=1,
e.strokeStyle=y("--least"),this.strips||this.series(e,this.bins.min,0),e.lineWidth=1.5,e.strokeStyle=y("--reserved"),this.
series(e,this.bins.reserved,1),e.setLineDash([5,3]),e.strokeStyle=y("--device"),this.series(e,this.bins.used,1);let t=this.
limit();t!==null&&t<=this.top&&(e.strokeStyle=y("--bad"),e.setLineDash([8,4]),R(e,v.left,this.yOf(t),v.left+this.plotWidth(),
this.yOf(t))),e.setLineDash([])}drawMarks(e){let t=this.source.offset,s=v.top+this.plotHeight(),n=o=>o>=v.left-1&&o<=v.left+
this.plotWidth()+1;e.textAlign="center",e.textBaseline="bottom",e.font="bold 11px system-ui, sans-serif";for(let o of this.
source.process.marks){let a=this.xOf(o.time_ns-t);n(a)&&(e.fillStyle=y("--accent"),e.beginPath(),e.moveTo(a,s-8),e.lineTo(
a+5,s),e.lineTo(a-5,s),e.fill())}for(let o of this.source.process.ooms){let a=this.xOf(o.time_ns-t);!n(a)||o.device!==this.
source.devices[this.state.view.device]||(e.strokeStyle=e.fillStyle=y("--bad"),e.lineWidth=1.5,R(e,a,v.top,a,s),e.fillText(
"OOM",O(a,v.left+14,v.left+this.plotWidth()-14),v.top-2))}let i=this.state.view.cursor;i!==null&&n(this.xOf(i))&&(e.strokeStyle=
y("--accent"),e.lineWidth=2,R(e,this.xOf(i),v.top,this.xOf(i),s))}drawOverview(){let t=L(this.overview,40),s=this.plotWidth(),
n=this.state.view,i=this.source.bins(n.device,this.source.start,this.source.end,s,n.by),o=1;for(let u=0;u<i.n;u++)o=Math.
max(o,i.max[u]);t.fillStyle=y("--rest");for(let u=0;u<i.n;u++){let m=v.left+u/i.n*s,d=40-i.max[u]/o*36;t.fillRect(m,d,Math.
max(1,s/i.n+.3),40-d)}let a=v.left+n.from/this.source.end*s,c=v.left+n.to/this.source.end*s;t.fillStyle=y("--shade"),t.fillRect(
v.left,0,a-v.left,40),t.fillRect(c,0,v.left+s-c,40),t.strokeStyle=y("--accent"),t.lineWidth=2,t.strokeRect(a,1,Math.max(
2,c-a),38)}drawHover(){let e=L(this.overlay,this.height),t=this.hover,s=t&&this.bins&&t.x>=v.left&&t.x<=v.left+this.plotWidth();
if(this.tip.hidden=!s,!t||!s)return;e.strokeStyle=y("--text"),e.globalAlpha=.6,R(e,t.x,v.top,t.x,v.top+this.plotHeight()),
this.brush!==null&&(e.fillStyle=y("--accent"),e.globalAlpha=.2,e.fillRect(Math.min(this.brush,t.x),v.top,Math.abs(t.x-this.
brush),this.plotHeight()));let n=this.timeAt(t.x),i=this.levelAt(t.y),o=this.strips?he(this.source.blocks,this.strips,n,
i):null;o&&(e.globalAlpha=1,e.lineWidth=2,this.stripPath(e,o),e.stroke()),w(this.tip,o?this.blockTip(o.block):this.binTip(
n,i));let a=t.x>v.left+this.plotWidth()/2;this.tip.style.left=a?"":`${t.x+14}px`,this.tip.style.right=a?`${this.tip.parentElement.
clientWidth-t.x+14}px`:"",this.tip.style.top=`${Math.min(t.y,60)}px`}stepAt(e){let t=this.source.column("steps.start"),s=this.
source.column("steps.end"),n=ue(t,e+1)-1;return n>=0&&e<=s[n]?this.source.column("steps.step")[n]:null}when(e){let t=this.
stepAt(e),{from:s,to:n}=this.state.view,i=A(e+this.source.offset,(n-s)/1e3);return t===null?i:`${i} \xB7 ${l("step")} ${t}`}binTip(e,t){
let s=this.bins,n=this.binAt(e),i=this.source.process.marks.filter(m=>Math.abs(this.xOf(m.time_ns-this.source.offset)-this.
xOf(e))<5),o=s.layers.map((m,d)=>({k:d,value:m[n]})).filter(m=>m.value>0),a=0,c=-1;for(let m of o)t>=a&&t<a+m.value&&(c=
m.k),a+=m.value;o.sort((m,d)=>d.value-m.value);let u=o.slice(0,9);return[h("b",{},this.when(s.exact?e:s.at[n])),...i.map(
m=>h("div.mark",{},`\u25B2 ${m.name??""} ${m.text}`)),h("div.row",{},h("span",{},l("allocated")),h("b",{"data-value":"al\
located"},p(s.max[n]))),...this.strips?[]:u.map(m=>h(m.k===c?"div.row.under":"div.row",{},h("span",{},F(this.colours[m.k]),
K(s.keys[m.k])),h("span",{},p(m.value)))),...s.reserved[n]>0?[h("div.row",{},h("span",{},l("reserved")),h("span",{},p(s.
reserved[n]-1)))]:[],...s.used[n]>0?[h("div.row",{},h("span",{},l("used")),h("span",{},p(s.used[n]-1)))]:[]]}blockTip(e){
let t=this.source.blocks,s=this.source.frames(t.stack[e]),n=this.source.text(t.tensor[e]),i=this.source.offset,o=(c,u)=>u===
null?[]:[h("div.row",{},h("span",{},c),h("span",{},u))],a=t.free[e]===1/0?l("stillAlive"):B(t.free[e]-t.alloc[e]);return[
h("b",{},n??l("block")),...o(l("size"),p(t.size[e])),...H.flatMap(c=>o(l(c),this.source.text(t.keys[c][e]))),...o(l("all\
ocatedAt"),A(t.alloc[e]+i,Math.max(1,(this.state.view.to-this.state.view.from)/1e3))),...o(l("lifetime"),a),...o(l("step"),
t.step[e]>0?String(t.step[e]-1):null),h("code",{},s.length?C(P(s)):l("noStack")),...P(s)?.source?[h("code.source",{},P(s).
source)]:[]]}wholeStack(e){return h("ol.stack",{},this.source.frames(this.source.blocks.stack[e]).map(t=>h("li",{},h(t.kind===
0?"code.own":"code",{},C(t)),t.source&&h("code.source",{},t.source))))}fillLegend(){let e=this.bins,t=(c,u)=>h("span",{},
h(`i.${c}`),u),s=e.keys.map((c,u)=>({k:c,i:u,most:Math.max(...e.layers[u])})).filter(c=>c.most>0),n=s.map(c=>c.most).sort(
(c,u)=>u-c)[Me-1]??0,i=s.filter(c=>c.most>=n).slice(0,Me),o=c=>c.some(u=>u>0),a=this.limit();w(this.legend,i.reverse().map(
({k:c,i:u})=>h("span",{},F(this.colours[u]),K(c))),s.length>i.length&&h("span",{},`+ ${s.length-i.length}`),this.strips&&
h("span",{},F(y("--rest")),l("smaller")),o(e.reserved)&&t("line-reserved",l("reserved")),o(e.used)&&t("line-used",l("use\
d")),a!==null&&t("line-limit",`${l("limit")} ${p(a)}`),!this.strips&&!e.exact&&t("line-least",l("least")))}describe(){let e=this.
bins,{from:t,to:s}=this.state.view,n=this.source.offset,i=0;for(let c=1;c<e.n;c++)e.max[c]>e.max[i]&&(i=c);let o=Math.max(
1,(s-t)/100);this.canvas.setAttribute("aria-label",`${l("timeline")}: ${A(t+n,o)} \u2013 ${A(s+n,o)}, ${l("peakFigure")}\
 ${p(e.max[i])} ${l("at",A(e.at[i]+n,o))}. ${l("hint")}`);let a=B(e.width);w(this.note,e.exact?l("exact"):l("binned",a),
". ",l("hint")),w(this.values,h("summary",{},l("table"))),this.values.open&&this.fillValues()}fillValues(){if(!this.values.
open||this.values.childElementCount>1)return;let e=this.state.view,t=this.source.bins(e.device,e.from,e.to,24,e.by),s=Array.
from({length:t.n},(n,i)=>[this.when(t.start+i*t.width),p(t.max[i]),t.keys.map((o,a)=>({k:o,value:t.layers[a][i]})).sort(
(o,a)=>a.value-o.value).slice(0,3).filter(o=>o.value>0).map(o=>`${K(o.k)} ${p(o.value)}`).join(", "),t.reserved[i]>0?p(t.
reserved[i]-1):"-"]);this.values.append(S([l("time"),l("allocated"),l(e.by),l("reserved")],s,[1,3]))}};function R(r,e,t,s,n){
r.beginPath(),r.moveTo(e,t),r.lineTo(s,n),r.stroke()}function ue(r,e){let t=0,s=r.length;for(;t<s;){let n=t+s>>1;r[n]<e?
t=n+1:s=n}return t}var it=[...H,"line","tensor"],me=40,se=class{constructor(e){this.state=e;this.icicle=new ee(e),this.element=h("section",
{id:"peak"},h("h2",{},l("peak")),this.head,h("div.halves",{},h("div",{},this.tools,this.sums),this.icicle.element)),e.listen(
t=>{("cursor"in t||"device"in t||"query"in t||"other"in t)&&this.refresh()}),this.refresh()}element;head=h("div.tools");tools=h(
"div.tools");sums=h("div");icicle;by="category";rows=null;total=0;others=null;refresh(){let{cursor:e,device:t}=this.state.
view,s=this.state.source,n=s.drawn.peak;e===null?(this.rows=s.peakRows,this.total=n?.bytes??0):(this.rows=s.hasAll(e,e)?
ce(s,t,e):null,this.total=this.rows?this.rows.bytes.reduce((i,o)=>i+o,0):this.binAt(e).max),!this.rows&&(this.by==="line"||
this.by==="tensor")&&(this.by="category"),this.fillHead(),this.fillTools(),this.fillSums(),this.icicle.element.hidden=!this.
rows,this.rows&&this.icicle.show(this.rows)}sumsAt(e){let t=this.state.source;return e===null?Q(t,t.peakRows,this.by):t.
hasAll(e,e)?Q(t,ce(t,this.state.view.device,e),this.by):this.binAt(e).layers}binAt(e){let t=this.by==="line"||this.by===
"tensor"?"category":this.by,s=this.state.source.end/this.state.source.drawn.timeline.bins,n=this.state.source.bins(this.
state.view.device,e,e+s/100,.01,t),i=Math.max(0,Math.min(n.n-1,Math.floor((e-n.start)/n.width))),o=n.keys.map((a,c)=>({key:K(
a),bytes:n.layers[c][i],blocks:NaN,stack:0}));return{max:n.max[i],layers:o.filter(a=>a.bytes>0).sort((a,c)=>c.bytes-a.bytes)}}fillHead(){
let{cursor:e}=this.state.view,t=this.state.source,s=t.offset,n=e??t.drawn.peak?.time_ns??0,i=_(n+s);w(this.head,h("b",{"\
data-value":"moment"},e===null?l("peakMoment",i):l("moment",i)),h("span",{"data-value":"total","data-exact":this.total},
Z(this.total)),e!==null&&h("button",{type:"button",click:()=>this.state.change({cursor:null})},l("backToPeak")),this.state.
view.other===null?h("button",{type:"button",click:()=>this.state.change({other:e??-1})},l("compare")):h("span",{},l("com\
paredWith",this.state.view.other<0?l("toPeak"):_(this.state.view.other+s))," ",h("button",{type:"button",click:()=>this.
state.change({other:null})},l("stopComparing"))))}fillTools(){let e=this.rows?it:H;w(this.tools,h("div.choices",{role:"g\
roup","aria-label":l("composition")},e.map(t=>h("button",{type:"button","aria-pressed":String(t===this.by),click:()=>{this.
by=t,this.fillTools(),this.fillSums()}},l(t)))))}fillSums(){let e=this.state.source,t=this.state.view.query,s=this.rows,
n=t&&s?new N(e,t):null,i=s?Q(e,s,this.by,n?c=>n.row(s,c):void 0):this.binAt(this.state.view.cursor??0).layers,o=i.reduce(
(c,u)=>c+u.bytes,0),{other:a}=this.state.view;if(this.others=a===null?null:new Map(this.sumsAt(a<0?null:a).map(c=>[c.key,
c.bytes])),this.others&&!n){let c=new Set(i.map(u=>u.key));for(let u of this.others.keys())c.has(u)||i.push({key:u,bytes:0,
blocks:0,stack:0});i.sort((u,m)=>Math.abs(this.changeOf(m))-Math.abs(this.changeOf(u))||m.bytes-u.bytes)}w(this.sums,n&&
h("p.found",{"data-value":"found"},i.length?l("results",p(o)):l("noMatch")),S([this.by==="line"?l("place"):l("name"),l("\
size"),l("share"),l("blocksHead"),this.others?l("change"):""],i.slice(0,me).map(c=>this.row(c)),[1,2,3]),i.length>me&&h(
"p.faint",{},l("shown",me,g(i.length)))),this.sums.dataset.by=this.by}row(e){let t=this.by==="line"||this.by==="tensor"?
"var(--accent)":x(e.key),s=this.by==="line"?P(this.state.source.frames(e.stack))?.source:null,n=h("span",{title:e.key??"",
"data-key":e.key??l("unknown"),"data-exact":e.bytes},e.key??l("unknown"));return[h(this.by==="line"?"div.key.mono":"div.\
key",{},this.by!=="line"&&this.by!=="tensor"&&F(t),n,s&&h("code.source",{},s)),p(e.bytes),E(e.bytes,this.total),Number.isNaN(
e.blocks)?"-":g(e.blocks),this.others?this.change(e):D(e.bytes/Math.max(1,this.total),t)]}changeOf(e){return e.bytes-(this.
others?.get(e.key)??0)}change(e){let t=this.changeOf(e);return h(t>0?"span.more":"span.less",{"data-change":t},t===0?"=":
`${t>0?"+":""}${p(t)}`)}};function rt(r,e){let t=r.column(`bins.${e}.max`),s=t.reduce((o,a)=>Math.max(o,a),1),i=t.findIndex(o=>o>s*.01)/Math.max(1,
t.length);return i>.25?r.end*Math.max(0,i-(1-i)*.04):r.start}var ne=class{constructor(e){this.source=e;let t=e.drawn.peak?.
device??0;this.view={from:rt(e,t),to:e.end,device:t,by:"category",strips:!1,cursor:null,other:null,query:""},this.read()}view;listeners=[];listen(e){
this.listeners.push(e)}change(e){Object.assign(this.view,e),this.keepInside(),this.writeSoon();for(let t of this.listeners)
t(e)}keepInside(){let e=this.view,{start:t,end:s}=this.source,n=Math.min(s-t,Math.max(20,e.to-e.from));e.from=Math.max(t,
Math.min(e.from,s-n)),e.to=e.from+n}get isWhole(){return this.view.from<=this.source.start&&this.view.to>=this.source.end}seconds(e){
return String(Math.round(e+this.source.offset)/1e9)}writeSoon(){clearTimeout(this.timer),this.timer=window.setTimeout(()=>this.
write(),150)}timer=0;write(){let e=this.view,t=[];this.isWhole||t.push(`t=${this.seconds(e.from)}-${this.seconds(e.to)}`),
e.by!=="category"&&t.push(`by=${e.by}`),e.strips&&t.push("blocks=1"),e.device!==(this.source.drawn.peak?.device??0)&&t.push(
`device=${e.device}`),e.cursor!==null&&t.push(`at=${this.seconds(e.cursor)}`),e.other!==null&&t.push(`with=${e.other<0?"\
peak":this.seconds(e.other)}`),e.query&&t.push(`q=${encodeURIComponent(e.query)}`);let s=t.length?`#${t.join("&")}`:"#";
s!==(location.hash||"#")&&history.replaceState(null,"",s)}read(){let e=new URLSearchParams(location.hash.slice(1)),t=this.
view,s=u=>Number(u)*1e9-this.source.offset,n=/^([\d.]+)-([\d.]+)$/.exec(e.get("t")??"");n&&s(n[2])>s(n[1])&&(t.from=s(n[1]),
t.to=s(n[2]));let i=e.get("by");i&&H.includes(i)&&(t.by=i),t.strips=e.get("blocks")==="1";let o=Number(e.get("device")??
t.device);Number.isInteger(o)&&o>=0&&o<this.source.devices.length&&(t.device=o);let a=e.get("at");a!==null&&Number.isFinite(
Number(a))&&(t.cursor=s(a));let c=e.get("with");c==="peak"?t.other=-1:c!==null&&Number.isFinite(Number(c))&&(t.other=s(c)),
t.query=e.get("q")??"",this.keepInside()}};var M={left:70,right:10,top:8,bottom:22},q=class{constructor(e,t){this.curves=e;this.options=t;this.canvas=h("canvas",{role:"\
img","aria-label":t.label,"data-plot":"curves"});let s=h("div.plot",{},this.canvas,this.tip);this.element=h("div",{},s,h(
"div.legend",{},e.length<9&&e.map(n=>{let i=h("i.swatch");return i.style.background=n.colour,h("span",{},i,n.name)}))),this.
canvas.addEventListener("pointermove",n=>this.point(n)),this.canvas.addEventListener("pointerleave",()=>{this.tip.hidden=
!0}),t.click&&(this.canvas.style.cursor="pointer",this.canvas.addEventListener("click",n=>t.click(this.placeAt(n)))),new ResizeObserver(
this.redraw).observe(s)}element;canvas;tip=h("div.tip",{hidden:!0});redraw=T(()=>this.draw());top=1;get n(){return Math.
max(1,...this.curves.map(e=>e.values.length))}get width(){return Math.max(40,this.canvas.parentElement.clientWidth-M.left-
M.right)}placeAt(e){let t=e.clientX-this.canvas.getBoundingClientRect().left-M.left;return Math.max(0,Math.min(this.n-1,
Math.floor(t/this.width*this.n)))}drawAxes(e,t){e.font="11px system-ui, sans-serif",e.strokeStyle=y("--grid"),e.fillStyle=
y("--faint"),e.textAlign="right",e.textBaseline="middle";for(let i=0,o=J(this.top,4);i<=this.top;i+=o){let a=Math.round(
M.top+(1-i/this.top)*t)+.5;R(e,M.left,a,M.left+this.width,a),e.fillText(p(i),M.left-6,a)}e.textBaseline="top",e.textAlign=
"center";let s=Math.max(1,W(this.n,this.width/90)),n=this.options.ticks??Array.from({length:Math.ceil(this.n/s)},(i,o)=>({
at:o*s+.5,text:this.options.x(o*s)}));for(let{at:i,text:o}of n)e.fillText(o,M.left+Math.max(10,i/this.n*this.width),M.top+
t+6)}draw(){if(!this.element.isConnected)return;let e=L(this.canvas,this.options.height),t=this.options.height-M.top-M.bottom;
this.top=1;for(let s of this.curves)for(let n of s.values)n>this.top&&(this.top=n);this.top*=1.05,this.drawAxes(e,t);for(let s of this.
curves)this.drawCurve(e,s,t)}drawCurve(e,t,s){let n=Math.min(this.n,Math.ceil(this.width)),i=M.top+s,o=!1;e.beginPath();
for(let a=0;a<n;a++){let c=Math.floor(a*this.n/n),u=Math.floor((a+1)*this.n/n),m=NaN;for(let k=c;k<Math.max(c+1,u);k++)t.
values[k]<=m||(m=t.values[k]);let d=M.left+a/n*this.width,f=M.left+(a+1)/n*this.width;if(Number.isNaN(m)||m===void 0){o=
!1;continue}let b=M.top+(1-m/this.top)*s;t.filled?e.rect(d,b,Math.max(.6,f-d-(f-d>4?1:0)),i-b):o?e.lineTo(d,b):e.moveTo(
d,b),t.filled||e.lineTo(f,b),o=!0}e.lineWidth=1.6,t.filled?e.fillStyle=t.colour:e.strokeStyle=t.colour,t.filled?e.fill():
e.stroke()}point(e){let t=this.placeAt(e),s=this.canvas.getBoundingClientRect(),n=e.clientX-s.left,i=this.curves.map(a=>({
c:a,v:a.values[t]})).filter(({v:a})=>a>=0).sort((a,c)=>this.curves.length>8?c.v-a.v:0).slice(0,10);this.tip.hidden=i.length===
0,w(this.tip,h("b",{},this.options.x(t)),i.map(({c:a,v:c})=>{let u=h("i.swatch");return u.style.background=a.colour,h("d\
iv.row",{},h("span",{},u,a.name),h("span",{},p(c)))}));let o=n>s.width/2;this.tip.style.left=o?"":`${n+14}px`,this.tip.style.
right=o?`${s.width-n+14}px`:"",this.tip.style.top="10px"}};var U=13,ot=400,ie=class{constructor(e){this.state=e;let t=h("div.plot",{},this.canvas,this.tip);this.element=h("div",{},
t);let s=this.column("blocks");for(let n=0,i=0;n<s.length;i+=s[n++])this.first.push(i);this.canvas.addEventListener("poi\
ntermove",n=>this.point(n)),this.canvas.addEventListener("pointerleave",()=>{this.tip.hidden=!0}),new ResizeObserver(this.
redraw).observe(t)}element;canvas=h("canvas",{role:"img","data-plot":"segments"});tip=h("div.tip",{hidden:!0});pieces=[];rowBytes=1;nRows=0;first=[];redraw=T(
()=>this.draw());column(e){return this.state.source.column(`map.${e}`)}layOut(){let e=this.column("size"),t=[...e].sort(
(o,a)=>a-o);this.rowBytes=Math.max(1,t[Math.min(2,t.length-1)]??1,(t[0]??1)/40),this.pieces=[];let s=this.rowBytes/250,n=0,
i=0;for(let o=0;o<e.length&&i<ot;o++){n>0&&n+e[o]>this.rowBytes&&(n=0,i++);for(let a=0;a<e[o];a+=this.rowBytes){let c=Math.
min(e[o],a+this.rowBytes);this.pieces.push({segment:o,from:a,to:c,x:n,y:i*U}),n+=c-a+s,c<e[o]&&(n=0,i++)}}this.nRows=i+1}draw(){
if(!this.element.isConnected)return;this.layOut();let e=L(this.canvas,this.nRows*U+2),t=this.canvas.parentElement.clientWidth,
s=t/this.rowBytes,n=this.column("start"),i=this.column("bytes"),o=this.column("category"),a=this.column("blocks");for(let c of this.
pieces){e.fillStyle=y("--gap"),e.fillRect(c.x*s,c.y,Math.max(1,(c.to-c.from)*s),U-2);for(let u=this.first[c.segment];u<this.
first[c.segment]+a[c.segment];u++){let m=Math.max(n[u],c.from),d=Math.min(n[u]+i[u],c.to);d<=m||(e.fillStyle=x(this.state.
source.text(o[u])),e.fillRect((c.x+m-c.from)*s,c.y,Math.max(.7,(d-m)*s-.4),U-2))}}this.canvas.setAttribute("aria-label",
`${l("map")}: ${this.column("size").length}. ${l("mapHint")}`)}blockAt(e,t){let s=this.column("start"),n=this.column("by\
tes");for(let i=this.first[e.segment];i<this.first[e.segment]+this.column("blocks")[e.segment];i++)if(t>=s[i]&&t<s[i]+n[i])
return i;return-1}point(e){let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top,i=s/t.width*this.
rowBytes,o=this.pieces.find(b=>n>=b.y&&n<b.y+U&&i>=b.x&&i<b.x+b.to-b.from);if(this.tip.hidden=!o,!o)return;let a=o.from+
i-o.x,c=this.blockAt(o,a),u=this.state.source,m=(b,k)=>h("div.row",{},h("span",{},b),h("span",{},k)),d=c>=0?u.frames(this.
column("stack")[c]):[];w(this.tip,h("b",{},c<0?l("gap"):u.text(this.column("tensor")[c])??l("block")),c<0?m(l("size"),p(
this.gapAt(o,a))):m(l("size"),p(this.column("bytes")[c])),c>=0&&m(l("category"),u.text(this.column("category")[c])??l("u\
nknown")),m(l("segment"),`${p(this.column("size")[o.segment])}, `+l(this.column("small")[o.segment]?"smallPool":"largePo\
ol")),m(l("address"),`0x${this.column("address")[o.segment].toString(16)}`),c>=0&&h("code",{},d.length?C(P(d)):l("noStac\
k")));let f=s>t.width/2;this.tip.style.left=f?"":`${s+14}px`,this.tip.style.right=f?`${t.width-s+14}px`:"",this.tip.style.
top=`${n+16}px`}gapAt(e,t){let s=this.column("start"),n=this.column("bytes"),i=0,o=this.column("size")[e.segment];for(let a=this.
first[e.segment];a<this.first[e.segment]+this.column("blocks")[e.segment];a++)if(s[a]+n[a]<=t)i=Math.max(i,s[a]+n[a]);else if(s[a]>
t){o=s[a];break}return o-i}};function z(r,e,...t){return h("section",{id:r},h("h2",{},e),t)}function at(r){return r===null?l("beforeSteps"):l("inStep",
r)}function lt(r){return!r||!r.file?r?.function??l("unknown"):`${r.file}${r.line?`:${r.line}`:""}${r.function?` ${r.function}`:
""}`}function ct(r,e){if(!e?.file)return null;let t=r.column("frames.file"),s=r.column("frames.line");for(let n=0;n<t.length;n++)
if(s[n]===e.line&&r.text(t[n])===e.file)return r.text(r.column("frames.source")[n]);return null}function Se(r,e,t){let s=t??
ct(r,e);return h("div.site",{},h("code",{},lt(e)),s&&h("code.source",{},s))}function Ae(r){let e=r.process,t=e.peak,s=r.
report.health,n=s.verdict??"",i=["ran_out","leaks","killed"].includes(n),o=["grew","nearly_ran_out"].includes(n),a=s.text??
"",c=(m,d,f,b,k)=>h("div.figure",{},h("span",{},m),h("b",{"data-value":b,"data-exact":k??void 0},d),h("small",{},f)),u=t?
G(r,t.device):null;return h("section.summary",{id:"overview"},h(i?"p.verdict.bad":o?"p.verdict.warn":"p.verdict",{role:"\
status"},a),s.next&&h("p",{},l("next")," ",h("code",{},s.next)),h("div.figures",{},t&&c(l("peakFigure"),p(t.allocated),`${t.
device}, ${at(t.step)}, ${l("at",_(t.time_ns))}`,"peak",t.allocated),t&&c(l("reservedFigure"),p(t.reserved),t.reserved?`${E(
t.allocated,t.reserved)} ${l("allocated")}`:l("unknown"),"reserved"),u!==null&&c(l("limitFigure"),p(u),t?E(t.allocated,u):
"","limit"),c(l("stepsFigure"),g(e.steps.count),e.steps.mean_ns?l("mean",B(e.steps.mean_ns)):"","steps"),c(l("eventsFigu\
re"),g(e.events),B(e.end_ns-e.start_ns),"events")),ht(e))}function ht(r){let e=r.forecast;return!e||r.oom_count>0||e.seconds_to_oom===
null&&e.steps_to_oom===null?null:h("p.verdict.warn",{},e.steps_to_oom!==null?l("inSteps",g(e.steps_to_oom)):l("inSeconds",
B(e.seconds_to_oom*1e9))," ",e.advice.join(" "))}function ut(r){return r.fixes.length===0?null:[h("h3",{},l("fixes")),S(
[l("what"),l("saves"),l("proof")],r.fixes.map(e=>[h("div",{},e.text,e.conf&&h("code.source",{},e.conf)),e.saves_bytes===
null?"-":p(e.saves_bytes),h(e.proof==="estimate"?"span.badge":"span.badge.good",{},l(`proof_${e.proof}`))]),[1])]}function mt(r){
let e=r.evidence.replays;return e?.length?[h("h3",{},l("settings")),S([l("conf"),l("result"),l("needs")],e.map(t=>[h("co\
de",{},t.conf||l("defaults")),t.runs_out_before?l("sooner"):t.runs_out?l("runsOut"):h("span.badge.good",{},l("fits")),p(
t.needs)]),[2])]:null}function _e(r){let e=r.whatif;if(!e||e.settings.length<2)return null;let[t,...s]=e.settings,n=Math.
max(...e.settings.map(o=>o.peak_reserved),1),i=(o,a)=>[a,o.oom?l("runsOut"):o.conf===e.best&&o!==t?h("span.badge.good",{},
l("best")):l("fits"),h("span",{"data-exact":o.peak_reserved},p(o.peak_reserved)),p(o.wasted),g(o.retries),D(o.peak_reserved/
n,"var(--accent)")];return z("settings",l("settings"),h("p.faint",{},l("whatifHint",e.device)),S([l("conf"),l("result"),
l("needs"),l("wasted"),l("retries"),""],[i(t,[h("code",{},t.conf||l("defaults")),` (${l("asRecorded")})`]),...s.map(o=>i(
o,h("code",{},o.conf||l("defaults"))))],[2,3,4]))}function dt(r){let e=[["allocated","allocated"],["reserved","reserved"],
["limitFigure","limit"],["gap","largest_free"],["otherProcesses","others"]],t=Object.entries(r.evidence.categories??{}).
sort((n,i)=>i[1]-n[1]),s=t.reduce((n,[,i])=>n+i,0);return h("div.halves",{},S([l("evidence"),l("size")],[[l("request"),p(
r.request_bytes)],...e.filter(([,n])=>typeof r.evidence[n]=="number").map(([n,i])=>[l(n),p(r.evidence[i])])],[1]),t.length>
0&&S([l("category"),l("size"),""],t.map(([n,i])=>[h("span",{},F(x(n)),n),p(i),D(i/s,x(n))]),[1]))}function Le(r){let e=r.
source,t=e.report.explain?.ooms??[];return t.length===0?null:z("ooms",l("ooms"),t.map(s=>h("article",{},h("p.verdict.bad",
{},s.text??l(`cause_${s.cause}`)),h("p",{},l("oomLine",p(s.request_bytes),s.step??"-",p(s.evidence.allocated),p(s.evidence.
reserved))," ",h("button",{type:"button",click:()=>de(r,s.time_ns-e.offset)},l("at",_(s.time_ns)))),Se(e,s.site,s.site?.
source),[s.module,s.stage].some(Boolean)&&h("p.faint",{},[s.module,s.stage].filter(Boolean).join(" \xB7 ")),ut(s),dt(s),
mt(s))))}function de(r,e){let t=r.source.end/40;r.change({from:e-t,to:e+t,cursor:e}),document.getElementById("timeline").
scrollIntoView({block:"start"})}function pt(r,e){let t=e.bytes_per_step!==null?l("perStep",p(e.bytes_per_step)):e.bytes_per_second!==
null?`${p(e.bytes_per_second)}/s`:"-",s=(n,i)=>i?h("div.row",{},h("span",{},l(n)),h("span",{},i)):null;return h("article\
.leak",{},Se(r,e,e.source??null),h("div.pairs",{},s("grows",h("b",{},t)),s("size",Z(e.growth_bytes)),s("step",e.first_step!==
null?l("since",e.first_step):null),s("category",e.category),s("module",e.module),s("keptBy",e.kept_by),s("confidence",e.
confidence!==null?E(e.confidence,1):null)),e.evidence&&h("p.faint",{},e.evidence))}function $e(r){let e=r.process;return z(
"leaks",l("leaks"),e.leaks.length===0&&h("p",{},e.leak_text??l("noLeak")),e.leaks.map(t=>pt(r,t)))}function Oe(r){let{map:e}=r.
source.drawn;if(!e)return null;let t=r.source.process.fragmentation.find(s=>s.device===e.device);return z("map",l("map"),
t&&h("p",{},l("mapLine",p(t.reserved),t.device,p(t.allocated),p(t.largest_free))," ",h("button",{type:"button",click:()=>de(
r,e.time_ns)},l("at",_(e.time_ns+r.source.offset)))),h("p.faint",{},l("mapHint")),new ie(r).element)}function Fe(r){let e=r.
source,t=e.drawn.steps.shown;if(t===0)return null;let s=e.column("steps.peak"),n=e.column("steps.end_bytes"),i=e.column(
"steps.step"),o=e.column("steps.start"),a=e.column("steps.end"),c=e.column("steps.bytes"),u=f=>{let b=(a[f]-o[f])*.1;r.change(
{from:o[f]-b,to:a[f]+b}),document.getElementById("timeline").scrollIntoView({block:"start"})},m=new q([{name:l("stepPeak"),
colour:"#86b0d2",values:s,filled:!0},{name:l("stepEnd"),colour:"#d6604d",values:n}],{height:190,label:l("steps"),x:f=>`${l(
"step")} ${i[Math.min(f,t-1)]}`,click:u}),d=Array.from({length:t},(f,b)=>b).sort((f,b)=>s[b]-s[f]||f-b).slice(0,12);return z(
"steps",l("steps"),m.element,h("h3",{},l("largestSteps")),S([l("step"),l("stepPeak"),l("stepEnd"),l("stepBytes"),l("step\
Allocations"),l("stepTime")],d.map(f=>[h("button.link",{type:"button",click:()=>u(f)},String(i[f])),p(s[f]),p(n[f]),p(c[f]),
g(e.column("steps.allocations")[f]),B(a[f]-o[f])]),[1,2,3,4,5]))}function Te(r){let e=r.drawn.processes,t=r.report.ranks;
if(e.length<2)return null;let s=Math.max(...e.map(u=>u.peak??0),1),n=u=>u.rank!==null?l("rank",u.rank):l("pid",u.pid??"-"),
i=e.map((u,m)=>({p:u,i:m})).filter(({p:u})=>u.has_curve).map(({p:u,i:m})=>({name:n(u),colour:$[m%$.length],values:r.column(
`process.${m}`).map(d=>d>0?d-1:NaN)})),o=Math.max(...e.map(u=>u.end_ns)),a=i[0]?.values.length??1,c=W(o,10);return z("ra\
nks",l("ranks"),t?.says?.map(u=>h("p",{},u)),S([l("process"),l("rankHost"),l("rankPeak"),"",l("step"),l("rankEnd")],e.slice(
0,256).map(u=>[n(u),u.host??"-",h("span",{"data-exact":u.peak??void 0},p(u.peak)),D((u.peak??0)/s,"var(--accent)"),u.peak_step===
null?"-":String(u.peak_step),_(u.end_ns)]),[2,4,5]),e.length>256&&h("p.faint",{},l("shown",256,e.length)),i.length>0&&[h(
"h3",{},l("rankCurves")),new q(i,{height:190,label:l("rankCurves"),x:u=>A(u/a*o,o/100,o),ticks:Array.from({length:Math.floor(
o/c)+1},(u,m)=>({at:m*c/o*a,text:A(m*c,c,o)}))}).element])}function Ee(r){let e=r.process.accounting.filter(t=>t.moment===
"peak");return e.length===0?null:z("device",l("device"),e.map(t=>{let s=[...t.segments.map(n=>[n.owner,n.bytes]),[l("con\
text"),t.context],[l("otherProcesses"),t.others],[l("unexplained"),t.unexplained],[l("free"),t.total!==null&&t.used!==null?
t.total-t.used:null]];return[h("h3",{},`${t.device} ${l("at",_(t.time_ns))}`),S([l("owner"),l("size"),l("share"),""],s.filter(
([,n])=>n).map(([n,i])=>[h("span",{},F(x(n)),n),p(i),E(i,t.total??0),D(i/(t.total??i),x(n))]),[1,2])]}))}function Be(r){
let e=r.drawn,t=r.process,s=[...t.quality.doubts,...r.report.not_recorded],n=u=>_(u+r.offset),{all:i,shown:o,window_start_ns:a,
window_end_ns:c}=e.blocks;return o<i?s.push(a!==null&&c!==null?l("leftBlocks",g(i),g(o),n(a),n(c)):l("leftBlocksOnly",g(
i),g(o))):s.push(l("leftNothing",g(i))),e.timeline.known_ns>0&&s.push(l("givenUp",n(e.timeline.known_ns))),s.push(l("lef\
tBins",g(e.timeline.bins),B(r.end/e.timeline.bins))),e.peak&&e.peak.rows_shown<e.peak.rows&&s.push(l("leftPeak",g(e.peak.
rows),g(e.peak.rows_shown),p(e.peak.bytes_shown),p(e.peak.bytes))),e.steps.shown<e.steps.all&&s.push(l("leftSteps",g(e.steps.
all),g(e.steps.shown))),e.map&&e.map.segments_shown<e.map.segments&&s.push(l("leftMap",g(e.map.segments),g(e.map.segments_shown))),
e.processes.length>1&&s.push(l("leftRanks",pe(t))),z("quality",l("quality"),h("ul",{},s.map(u=>h("li",{},u))),h("p.faint",
{},l("full",""),h("code",{},`tidemark query ${we(r.report.run,1)} \u2026`)))}function pe(r){return r.rank!==null?l("rank",
r.rank):r.pid!==null?l("pid",r.pid):l("process")}function Pe(r){let e=r.source.process;return e.marks.length===0?null:z(
"marks",l("marks"),S([l("time"),l("step"),l("name"),""],e.marks.slice(0,100).map(t=>[h("button.link",{type:"button",click:()=>de(
r,t.time_ns-r.source.offset)},_(t.time_ns)),t.step===null?"-":String(t.step),t.name??"-",t.text]),[1]),e.mark_count>e.marks.
length&&h("p.faint",{},l("shown",e.marks.length,g(e.mark_count))))}var Re=document.getElementById("page");function fe(r){try{return localStorage.getItem(`tidemark.${r}`)}catch{return null}}
function Ce(r,e){try{localStorage.setItem(`tidemark.${r}`,e)}catch{}}function ze(r){r==="light"||r==="dark"?document.documentElement.
dataset.theme=r:delete document.documentElement.dataset.theme}function vt(r){let e=r.source.report,t=r.source.process,s=h(
"input",{type:"search",placeholder:l("search"),"aria-label":l("search"),value:r.view.query}),n=0;s.addEventListener("inp\
ut",()=>{clearTimeout(n),n=window.setTimeout(()=>r.change({query:s.value.trim()}),120)});let i=h("select",{"aria-label":l(
"theme"),change:a=>{let c=a.target.value;Ce("theme",c),ze(c),r.change({})}},["auto","light","dark"].map(a=>h("option",{value:a,
selected:(fe("theme")??"auto")===a},l(`theme${a[0].toUpperCase()}${a.slice(1)}`)))),o=h("button",{type:"button",click:()=>{
let a=Y()==="en"?"zh":"en";Ce("language",a),ae(a),He(r.source)}},l("language"));return h("header",{},h("a.skip",{href:"#\
overview"},l("skip")),h("div.name",{},h("h1",{},e.run.replace(/\/+$/,"").split("/").pop()??e.run),h("p.faint",{},[pe(t),
t.host,t.command,l("started",e.started_utc)].filter(Boolean).join(" \xB7 "))),h("div.tools",{},s,i,o))}function bt(r){return h(
"nav",{"aria-label":l("overview")},r.map(e=>{let t=e.querySelector("h2")?.textContent??l("overview");return h("a",{href:`\
#${e.id}`,click:s=>{s.preventDefault(),e.scrollIntoView({block:"start"}),e.setAttribute("tabindex","-1"),e.focus({preventScroll:!0})}},
t)}))}function He(r){let e=new ne(r),t=r.process,n=[Ae(r),r.devices.length>0&&new te(e).element,Le(e),r.drawn.peak&&new se(
e).element,(t.leaks.length>0||t.steps.count>0)&&$e(r),Oe(e),_e(r),Fe(e),Te(r),Ee(r),Pe(e),Be(r)].filter(i=>i instanceof HTMLElement);
w(Re,vt(e),bt(n),h("main",{},n),h("footer",{},l("madeBy",r.report.tidemark))),window.onhashchange=()=>{e.read(),e.change(
e.view)},document.documentElement.dataset.ready="1"}function yt(r){let e=r instanceof Error?r.message:String(r);w(Re,h("\
p.verdict.bad",{role:"alert"},l("failed",typeof DecompressionStream>"u"?l("old"):e)))}async function gt(){let r=fe("lang\
uage")??navigator.language;ae(r.startsWith("zh")?"zh":"en"),ze(fe("theme")??"auto");let e=document.getElementById("data"),
{json:t,rest:s}=await ve(e.textContent.trim());e.remove(),He(new X(t,s))}gt().catch(yt);})();
