"use strict";(()=>{var Q=class{constructor(e,t){this.places=e;this.bytes=t}made=new Map;get(e){let t=this.made.get(e);if(!t){let s=this.places[e];
t=s?Qe(this.bytes,s):new Float64Array(0),this.made.set(e,t)}return t}};function Qe(r,[e,,t,s]){let n=new Float64Array(t),
i=e,o=0;for(let a=0;a<t;a++){let u=0,h=1,d;do d=r[i++],u+=(d&127)*h,h*=128;while(d>127);s===1&&(o+=u%2===0?u/2:-(u+1)/2,
u=o),n[a]=u}return n}function Ze(r){let e=atob(r),t=new Uint8Array(e.length);for(let s=0;s<t.length;s++)t[s]=e.charCodeAt(
s);return t}function de(r){let e=new DataView(r.buffer,r.byteOffset).getUint32(0,!0);return{json:JSON.parse(new TextDecoder().
decode(r.subarray(4,4+e))),rest:r.subarray(4+e)}}async function Ee(r){let e=new Blob([Ze(r)]).stream(),t=new Response(e.
pipeThrough(new DecompressionStream("deflate")));return de(new Uint8Array(await t.arrayBuffer()))}function me(r,e){e==null||e===!1||(Array.isArray(e)?e.forEach(t=>me(r,t)):r.append(e instanceof Node?e:String(e)))}function c(r,e={},...t){
let[s,...n]=r.split("."),i=document.createElement(s);n.length&&(i.className=n.join(" "));for(let[o,a]of Object.entries(e))
typeof a=="function"?i.addEventListener(o,a):a===!0?i.setAttribute(o,""):a!==void 0&&a!==!1&&i.setAttribute(o,String(a));
return me(i,t),i}function y(r,...e){r.replaceChildren(),me(r,e)}function k(r,e,t=[]){let s=n=>t.includes(n)?{class:"n"}:
{};return c("div.scroll",{},c("table",{},c("thead",{},c("tr",{},r.map((n,i)=>c("th",{scope:"col",...s(i)},n)))),c("tbody",
{},e.map(n=>c("tr",{},n.map((i,o)=>c("td",s(o),i)))))))}function T(r,e){let t=c("i");return t.style.width=`${Math.max(0,
Math.min(1,r))*100}%`,t.style.background=e,c("span.bar",{"aria-hidden":"true"},t)}function P(r){let e=c("i.swatch",{"ari\
a-hidden":"true"});return e.style.background=r,e}function E(r,e){let t=window.devicePixelRatio||1,s=r.parentElement.clientWidth,
n=Math.max(1,Math.round(s*t)),i=Math.max(1,Math.round(e*t));(r.width!==n||r.height!==i)&&(r.width=n,r.height=i,r.style.width=
`${s}px`,r.style.height=`${e}px`);let o=r.getContext("2d");return o.setTransform(t,0,0,t,0,0),o.clearRect(0,0,s,e),o}function F(r){
let e=!1;return()=>{e||(e=!0,requestAnimationFrame(()=>{e=!1,r()}))}}function g(r){return getComputedStyle(document.documentElement).
getPropertyValue(r).trim()}var Z=[["parameter","#49b477"],["buffer","#a0580f"],["optimizer_state","#d9a420"],["gradient","#1a71e3"],["input","#1378\
85"],["activation","#d6604d"],["kv_cache","#5e6356"],["autograd_detail","#62b5e8"],["temporary","#764c9a"],["embedding",
"#2a6459"],["attention","#4a3fc0"],["mlp","#f7a88f"],["normalization","#d9a3ee"],["lora","#c51b7d"],["conv","#7a2f6b"],[
"expert","#7a2f1c"],["router","#f0d37a"],["(cuBLAS workspace)","#b47b80"],["(cuBLASLt workspace)","#c9b08a"],["head","#7\
fc06a"],["model_load","#49b477"],["data","#137885"],["wrap","#62b5e8"],["optimizer_setup","#7d5a1a"],["privacy_setup","#\
c51b7d"],["forward","#d6604d"],["backward","#1a71e3"],["privacy","#f7a88f"],["optimizer","#d9a420"],["eval","#764c9a"],[
"torch","#ee7a32"],["jax","#1a71e3"],["cupy","#764c9a"],["cublas","#137885"],["cudnn","#62b5e8"],["nccl","#49b477"],["us\
er","#c51b7d"],["other","#9aa0a6"],["unknown","#c4c7cc"]],_=["#4393c3","#e08214","#33a05c","#d6604d","#9970ab","#878787",
"#35978f","#c51b7d","#b8860b","#6a51a3"];var et=new Map(Z),tt=new Map(Z.map(([r],e)=>[r,e]));function S(r){let e=et.get(r??"unknown");if(e)return e;let t=0;for(let s=0;s<
r.length;s++)t=Math.imul(31,t)+r.charCodeAt(s)>>>0;return _[t%_.length]}function _e(r){return tt.get(r??"unknown")??Z.length}var st={language:"\u4E2D\u6587",theme:"Theme",themeAuto:"System",themeLight:"Light",themeDark:"Dark",search:"Find a file\
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
ter will do",sql:"SQL",sqlRun:"Run",sqlHint:"Ctrl+Enter runs it. At most 1,000 rows and 10 s.",sqlRows:"{0} rows in {1} \
s",sqlMore:"There are more.",sqlPeak:"At the peak",sqlSites:"Lines",sqlSteps:"Steps",sqlLeaks:"Leaks",sqlProcesses:"Proc\
esses",live:"live",jobs:"Recorded processes",usedHead:"Used",totalHead:"Total",allocatedHead:"Allocated",reservedHead:"R\
eserved",devices:"Devices",servedBy:"Served by tidemark {0}.",noJobs:"No process is recorded now.",command:"Command",serverGone:"\
The server does not answer. What is shown is of its last answer."},nt={language:"English",theme:"\u4E3B\u9898",themeAuto:"\
\u8DDF\u968F\u7CFB\u7EDF",themeLight:"\u6D45\u8272",themeDark:"\u6DF1\u8272",search:"\u67E5\u627E\u6587\u4EF6\u3001\u51FD\u6570\u3001\u6A21\u5757\u6216\u5F20\u91CF",
skip:"\u8DF3\u5230\u6B63\u6587",overview:"\u6982\u89C8",timeline:"\u663E\u5B58\u968F\u65F6\u95F4\u53D8\u5316",peak:"\u5DF2\u5206\u914D\u7684\
\u5185\u5BB9",ooms:"\u663E\u5B58\u4E0D\u8DB3 (OOM)",leaks:"\u6CC4\u6F0F",map:"\u6BB5",steps:"\u6B65",ranks:"\u5404 rank",
device:"\u8BBE\u5907",settings:"\u5206\u914D\u5668\u8BBE\u7F6E",marks:"\u6807\u8BB0",quality:"\u672A\u5305\u542B\u7684\u5185\u5BB9",
peakFigure:"\u5DF2\u5206\u914D\u5CF0\u503C",reservedFigure:"\u5F53\u65F6\u5DF2\u9884\u7559",limitFigure:"\u4E0A\u9650",stepsFigure:"\
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
failed:"\u65E0\u6CD5\u663E\u793A\u6B64\u9875\u9762\uFF1A{0}",old:"\u6D4F\u89C8\u5668\u8FC7\u65E7\uFF1B\u8BF7\u4F7F\u7528 2023 \u5E74\u6216\u66F4\u65B0\u7684\u6D4F\u89C8\u5668",
sql:"SQL",sqlRun:"\u8FD0\u884C",sqlHint:"Ctrl+Enter \u8FD0\u884C\u3002\u6700\u591A 1,000 \u884C\u300110 \u79D2\u3002",sqlRows:"\
{0} \u884C\uFF0C\u7528\u65F6 {1} \u79D2",sqlMore:"\u8FD8\u6709\u66F4\u591A\u3002",sqlPeak:"\u5CF0\u503C\u65F6\u523B",sqlSites:"\
\u4EE3\u7801\u884C",sqlSteps:"\u6B65\u9AA4",sqlLeaks:"\u6CC4\u6F0F",sqlProcesses:"\u8FDB\u7A0B",live:"\u5B9E\u65F6",jobs:"\
\u6B63\u5728\u8BB0\u5F55\u7684\u8FDB\u7A0B",usedHead:"\u5DF2\u7528",totalHead:"\u603B\u8BA1",allocatedHead:"\u5DF2\u5206\u914D",
reservedHead:"\u5DF2\u9884\u7559",devices:"\u8BBE\u5907",servedBy:"\u7531 tidemark {0} \u63D0\u4F9B\u3002",noJobs:"\u5F53\u524D\u6CA1\u6709\u88AB\
\u8BB0\u5F55\u7684\u8FDB\u7A0B\u3002",command:"\u547D\u4EE4",serverGone:"\u670D\u52A1\u5668\u6CA1\u6709\u54CD\u5E94\u3002\u663E\u793A\u7684\u662F\u6700\u540E\u4E00\u6B21\u7684\u7ED3\u679C\u3002"},
pe="en";function fe(r){pe=r,document.documentElement.lang=r==="zh"?"zh-CN":"en"}function ee(){return pe}function l(r,...e){
return(pe==="zh"?nt:st)[r].replace(/\{(\d)\}/g,(s,n)=>String(e[Number(n)]??"-"))}var $=["category","module","component","stage"],q=class{constructor(e,t){this.page=e;this.drawn=e.drawn,this.columns=new Q(
e.drawn.columns,t),this.own=this.readBlocks(),this.peakRows=this.readPeak();let s=this.column("stacks.n");this.frameStarts=
new Float64Array(s.length+1);for(let n=0;n<s.length;n++)this.frameStarts[n+1]=this.frameStarts[n]+s[n]}drawn;own;peakRows;columns;levels=new Map;frameStarts;get report(){
return ee()==="zh"?this.page.report_zh:this.page.report}get process(){return this.report.processes[this.report.chosen]}get whatif(){
return this.page.whatif}get devices(){return this.drawn.timeline.devices}get blocks(){return this.own}get start(){return this.
drawn.timeline.start_ns}get end(){return Math.max(1,this.drawn.timeline.end_ns)}get offset(){return this.drawn.timeline.
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
[this.finest(e)];t[t.length-1].n>1;)t.push(it(t[t.length-1]));this.levels.set(e,t)}return t}finest(e){let t=this.drawn.timeline.
bins;return{n:t,width:(this.end-this.start)/t,best:Int32Array.from({length:t},(s,n)=>n),max:this.column(`bins.${e}.max`),
min:this.column(`bins.${e}.min`),reserved:this.column(`bins.${e}.reserved`),used:this.column(`bins.${e}.used`)}}bins(e,t,s,n,i){
let o=this.levelsOf(e),a=(s-t)/Math.max(1,n),u=o[0];for(let h of o)h.width<=a*1.01&&(u=h);return u===o[0]&&u.width>a&&this.
hasAll(t,s)?this.exactBins(e,t,s,n,i):this.cut(e,u,t,s,i)}layersOf(e,t){return this.drawn.timeline.layers.filter(n=>n.device===
e&&n.by===t).map(n=>({key:{key:n.key,others:n.others},column:this.column(n.column)})).sort((n,i)=>Oe(n.key,t)-Oe(i.key,t))}cut(e,t,s,n,i){
let o=O(Math.floor((s-this.start)/t.width),0,t.n-1),a=O(Math.ceil((n-this.start)/t.width),o+1,t.n),u=this.layersOf(e,i),
h=this.column(`bins.${e}.at`),d=a-o,m=f=>{let b=new Float64Array(d);for(let x=0;x<d;x++)b[x]=f[t.best[o+x]];return b};return{
start:this.start+o*t.width,width:t.width,n:d,exact:!1,max:t.max.subarray(o,a),min:t.min.subarray(o,a),at:m(h),reserved:t.
reserved.subarray(o,a),used:t.used.subarray(o,a),keys:u.map(f=>f.key),layers:u.map(f=>m(f.column))}}exactBins(e,t,s,n,i){
let o=this.layersOf(e,i),a=o.map(b=>b.key.key),u=this.cut(e,this.levelsOf(e)[0],t,s,i),h=Math.max(1,Math.round(n)),d=(s-
t)/h,m=new ve(this,e,i,a,o.findIndex(b=>b.key.others>0)),f={start:t,width:d,n:h,exact:!0,max:new Float64Array(h),min:new Float64Array(
h),at:new Float64Array(h),reserved:new Float64Array(h),used:new Float64Array(h),keys:o.map(b=>b.key),layers:o.map(()=>new Float64Array(
h))};m.fill(f);for(let b=0;b<h;b++){let x=O(Math.floor((t+b*d-u.start)/u.width),0,u.n-1);f.reserved[b]=u.reserved[x],f.used[b]=
u.used[x]}return f}};function it(r){let e=Math.ceil(r.n/2),t={n:e,width:r.width*2,max:new Float64Array(e),min:new Float64Array(
e),best:new Int32Array(e),reserved:new Float64Array(e),used:new Float64Array(e)};for(let s=0;s<e;s++){let n=2*s,i=Math.min(
2*s+1,r.n-1),o=r.max[i]>r.max[n]?i:n;t.max[s]=r.max[o],t.best[s]=r.best[o],t.min[s]=Math.min(r.min[n],r.min[i]),t.reserved[s]=
Math.max(r.reserved[n],r.reserved[i]),t.used[s]=Math.max(r.used[n],r.used[i])}return t}function Oe(r,e){return r.others>
0?2e3:e==="module"?0:_e(r.key)}var ve=class{layer;changes=[];constructor(e,t,s,n,i){let o=e.blocks,a=o.keys[s],u=i<0?0:i,
h=new Map(n.map((d,m)=>[d,m]));this.layer=new Int16Array(o.n).fill(-1);for(let d=0;d<o.n;d++)o.device[d]===t&&(this.layer[d]=
h.get(e.text(a[d]))??u);this.source=e}source;gather(e,t,s){let n=this.source.blocks,i=0;for(let o=0;o<n.n&&n.alloc[o]<=t;o++)
this.layer[o]<0||n.free[o]<e||(n.alloc[o]<e?(s[this.layer[o]]+=n.size[o],i+=n.size[o]):this.changes.push({ns:n.alloc[o],
block:o,isFree:!1}),n.free[o]<=t&&this.changes.push({ns:n.free[o],block:o,isFree:!0}));return this.changes.sort((o,a)=>o.
ns-a.ns||Number(a.isFree)-Number(o.isFree)),i}fill(e){let t=this.source.blocks,s=new Float64Array(e.layers.length),n=e.start+
e.n*e.width,i=this.gather(e.start,n,s),o=0;for(let a=0;a<e.n;a++){let u=a+1===e.n?1/0:e.start+(a+1)*e.width;for(e.max[a]=
e.min[a]=i,e.at[a]=e.start+a*e.width,s.forEach((h,d)=>{e.layers[d][a]=h});o<this.changes.length&&this.changes[o].ns<u;o++){
let h=this.changes[o],d=h.isFree?-t.size[h.block]:t.size[h.block];if(i+=d,s[this.layer[h.block]]+=d,i<e.min[a]&&(e.min[a]=
i),!(i<=e.max[a])){e.max[a]=i,e.at[a]=h.ns;for(let m=0;m<s.length;m++)e.layers[m][a]=s[m]}}}}};function te(r,e){let t=r.
report.explain?.ooms.find(n=>n.device===e)?.evidence.limit;if(typeof t=="number")return t;let s=r.process;return s.ooms.
find(n=>n.device===e&&n.capacity)?.capacity??s.accounting.find(n=>n.device===e&&n.total)?.total??null}function O(r,e,t){
return r<e?e:r>t?t:r}async function j(r,e){let t=await fetch(r,e===void 0?{}:{method:"POST",headers:{"Content-Type":"application/sql"},body:e});
if(t.ok)return t;let s=await t.text(),n;try{n=JSON.parse(s).error}catch{}throw new Error(n??s.trim())}async function $e(r){
return de(new Uint8Array(await(await j(r)).arrayBuffer()))}var rt=120,ot=6,W=class r extends q{constructor(t,s,n){super(
t,s);this.query=n;this.drawn.strings.forEach((i,o)=>this.numbers.set(i,o+1))}windows=[];stacks=new Map;joined=null;wanted=null;moment=null;moments=new Set;asking=!1;timer=0;nextStack=1<<
24;numbers=new Map;onMore=()=>{};static async load(t){let{json:s,rest:n}=await $e(`api/page${t&&`?${t}`}`);return new r(
s,n,t)}hasAll(t,s){return super.hasAll(t,s)||this.windows.some(n=>n.all&&n.from<=t&&n.to>=s)}get blocks(){return this.joined??
this.own}frames(t){return this.stacks.get(t)??super.frames(t)}bins(t,s,n,i,o){let a=(n-s)/Math.max(1,i),u=(this.end-this.
start)/this.drawn.timeline.bins;if(super.hasAll(s,n)||a>=u*.7)return super.bins(t,s,n,i,o);let h=this.windows.find(d=>d.
from<=s&&d.to>=n&&(d.all||(d.to-d.from)/d.source.drawn.timeline.bins<=a*2));if(!h)this.want(s,n,i);else if(!h.all)return h.
source.bins(t,s,n,i,o);return super.bins(t,s,n,i,o)}wantMoment(t){this.hasAll(t,t)||this.moments.has(t)||(this.moments.add(
t),this.moment=t,this.askWanted())}want(t,s,n){let i=Math.max(1e3,s-t);this.wanted={from:Math.max(0,Math.floor(t-i/4)),to:Math.
ceil(s+i/4),pixels:n},!(this.asking||this.timer)&&(this.timer=window.setTimeout(()=>{this.timer=0,this.askWanted()},rt))}async askWanted(){
if(this.asking)return;let t=this.moment,s=t===null?this.wanted:{from:Math.floor(t),to:Math.ceil(t)+1,pixels:1};if(s){t===
null&&(this.wanted=null),this.moment=null,this.asking=!0;try{let n=Math.min(4096,Math.max(16,Math.round(s.pixels*1.5))),
{json:i,rest:o}=await $e(`api/timeline?t0=${s.from}&t1=${s.to}&width=${n}${this.query&&`&${this.query}`}`);this.take(i,o),
this.onMore()}catch{}finally{this.asking=!1}(this.wanted||this.moment!==null)&&this.askWanted()}}take(t,s){let n=new q({
...this.page,drawn:t.drawn},s),i=n.drawn,o=n.start,a=n.end,u=i.blocks.window_start_ns!==null&&i.blocks.window_start_ns<=
o&&i.blocks.window_end_ns!==null&&i.blocks.window_end_ns>=a;this.windows.unshift({from:o,to:a,source:n,all:u}),this.windows.
length=Math.min(this.windows.length,ot),this.join()}numberOf(t){if(t===null)return 0;let s=this.numbers.get(t);return s===
void 0&&(s=this.drawn.strings.push(t),this.numbers.set(t,s)),s}join(){let t=new Set,s=[],n=(i,o)=>{for(let a=0;a<i.n;a++){
let u=`${i.alloc[a]} ${i.address[a]} ${i.size[a]} ${i.device[a]} ${i.free[a]}`;t.has(u)||s.push({b:i,i:a,w:o}),t.add(u)}};
n(this.own,null);for(let i of this.windows)n(i.source.blocks,i);s.sort((i,o)=>i.b.alloc[i.i]-o.b.alloc[o.i]),this.joined=
this.gather(s)}stackOf(t,s,n){if(!(n>0))return 0;let i=s.get(n);return i===void 0&&(i=this.nextStack++,this.stacks.set(i,
t.source.frames(n)),s.set(n,i)),i}gather(t){let s=new Map(this.windows.map(o=>[o,new Map]));this.stacks.clear();let n=o=>Float64Array.
from(t,a=>o(a.b)[a.i]),i=o=>Float64Array.from(t,a=>a.w?this.numberOf(a.w.source.text(o(a.b)[a.i])):o(a.b)[a.i]);return{n:t.
length,alloc:n(o=>o.alloc),free:n(o=>o.free),size:n(o=>o.size),address:n(o=>o.address),step:n(o=>o.step),device:n(o=>o.device),
tensor:i(o=>o.tensor),stack:Float64Array.from(t,o=>o.w?this.stackOf(o.w,s.get(o.w),o.b.stack[o.i]):o.b.stack[o.i]),keys:Object.
fromEntries($.map(o=>[o,i(a=>a.keys[o])]))}}};var Te=[["sqlPeak",`SELECT category, sum(size) AS bytes, count(*) AS blocks
FROM peak GROUP BY 1 ORDER BY 2 DESC`],["sqlSites",`SELECT sum(a.size) AS bytes, count(*) AS allocations, s.text AS stac\
k
FROM allocations a JOIN stacks s USING (stack_id)
GROUP BY stack_id ORDER BY 1 DESC LIMIT 20`],["sqlSteps",`SELECT step, peak_allocated, end_allocated
FROM steps ORDER BY peak_allocated DESC LIMIT 20`],["sqlLeaks","SELECT * FROM leaks"],["sqlProcesses","SELECT * FROM pro\
cesses"]];function at(r){return r===null?"-":String(r)}function lt(r){let e=t=>{let s=t===null?"":String(t);return typeof t==
"string"&&/^[=+\-@\t\r]/.test(s)&&(s=`'${s}`),/[",\r\n]/.test(s)?`"${s.replaceAll('"','""')}"`:s};return[r.columns,...r.
rows].map(t=>t.map(e).join(",")).join(`\r
`)+`\r
`}var se=class{constructor(e){this.query=e;this.text.value=Te[0][1],this.text.addEventListener("keydown",t=>{t.key==="En\
ter"&&(t.ctrlKey||t.metaKey)&&this.run()}),this.element=c("section",{id:"sql"},c("h2",{},l("sql")),c("div.tools",{},Te.map(
([t,s])=>c("button",{type:"button",click:()=>{this.text.value=s,this.run()}},l(t)))),this.text,c("div.tools",{},c("butto\
n",{type:"button","data-act":"sql",click:()=>void this.run()},l("sqlRun")),this.csv,c("span.faint",{},l("sqlHint"))),this.
answer)}element;text=c("textarea",{rows:4,spellcheck:"false","aria-label":"SQL"});answer=c("div",{"aria-live":"polite"});csv=c(
"button",{type:"button",hidden:!0,click:()=>this.save()},"CSV");result=null;async run(){y(this.answer,c("p.faint",{},"..\
.")),this.csv.hidden=!0;try{let e=await j(`api/sql${this.query&&`?${this.query}`}`,this.text.value);this.result=await e.
json(),this.show(this.result)}catch(e){y(this.answer,c("p.verdict.bad",{role:"alert"},e instanceof Error?e.message:String(
e)))}}show(e){let t=e.columns.map((s,n)=>n).filter(s=>e.rows.every(n=>typeof n[s]!="string"));this.csv.hidden=!1,y(this.
answer,k(e.columns,e.rows.map(s=>s.map(at)),t),c("p.faint",{},l("sqlRows",e.rows.length,e.seconds.toFixed(3)),e.more?` ${l(
"sqlMore")}`:""))}save(){if(!this.result)return;let e=URL.createObjectURL(new Blob([lt(this.result)],{type:"text/csv"}));
c("a",{href:e,download:"tidemark.csv"}).click(),setTimeout(()=>URL.revokeObjectURL(e),1e3)}};var Pe=["B","KiB","MiB","GiB","TiB","PiB"];function p(r){if(r==null)return"-";let e=0,t=Math.abs(r);for(;t>=1023.95&&e<Pe.
length-1;)t/=1024,e++;let s=e===0?0:e>=3?2:1;return`${r<0?"-":""}${t.toFixed(s)} ${Pe[e]}`}function ne(r){return r==null?
"-":r<1024?`${r} B`:`${p(r)} (${w(r)} B)`}function w(r){return r==null?"-":Math.round(r).toLocaleString("en-US")}function B(r,e){
if(!(e>0))return"-";let t=100*r/e;return t>0&&t<1?"<1 %":`${Math.round(t)} %`}function R(r){if(r==null)return"-";if(r<1e3)
return`${r.toFixed(0)} ns`;if(r<1e6)return`${(r/1e3).toFixed(2)} \xB5s`;if(r<1e9)return`${(r/1e6).toFixed(2)} ms`;if(r<12e10)
return`${(r/1e9).toFixed(2)} s`;let e=Math.round(r/1e9),t=Math.floor(e/60);return t<60?`${t} min ${e%60} s`:`${Math.floor(
t/60)} h ${t%60} min`}function A(r,e,t=r){let[s,n]=t>=1e9?["s",1e9]:t>=1e6?["ms",1e6]:t>=1e3?["\xB5s",1e3]:["ns",1],i=Math.
max(0,Math.min(9,Math.ceil(-Math.log10(Math.max(1,e)/n)-1e-9)));return`${(r/n).toFixed(i)} ${s}`}function L(r){return A(
r,r>=1e9?1e6:r>=1e6?1e4:10)}function I(r,e){let t=r/Math.max(1,e),s=10**Math.floor(Math.log10(t)),n=t/s;return s*(n<=1?1:
n<=2?2:n<=5?5:10)}function ie(r,e){return 2**Math.max(0,Math.ceil(Math.log2(Math.max(1,r/Math.max(1,e)))))}function Fe(r,e=2){
let t=r.split("/");return t.length<=e?r:t.slice(-e).join("/")}function C(r){return r.find(e=>e.kind===0)??r.find(e=>e.kind===1)??r[0]??null}function H(r){return r?r.file?`${r.file}${r.
line?`:${r.line}`:""}${r.function?` ${r.function}`:""}`:r.function??"?":"?"}function be(r,e,t){let s=r.blocks,n=[];for(let o=0;o<
s.n&&s.alloc[o]<=t;o++)s.free[o]>t&&s.device[o]===e&&n.push(o);let i=o=>Float64Array.from(n,a=>o[a]);return{n:n.length,bytes:i(
s.size),blocks:new Float64Array(n.length).fill(1),stack:i(s.stack),tensor:i(s.tensor),keys:{category:i(s.keys.category),
module:i(s.keys.module),component:i(s.keys.component),stage:i(s.keys.stage)}}}function re(r,e,t,s){let n=new Map,i=new Map,
o=a=>{let u=i.get(a);return u===void 0&&(u=a>0?H(C(r.frames(a))):null,i.set(a,u)),u};for(let a=0;a<e.n;a++){if(s&&!s(a))
continue;let u=t==="line"?o(e.stack[a]):r.text(t==="tensor"?e.tensor[a]:e.keys[t][a]),h=n.get(u);h||n.set(u,h={key:u,bytes:0,
blocks:0,stack:e.stack[a]}),h.bytes+=e.bytes[a],h.blocks+=e.blocks[a]}return[...n.values()].sort((a,u)=>u.bytes-a.bytes||
ct(a.key,u.key))}function ct(r,e){return r===null||e===null?+(r===null)-+(e===null):r<e?-1:r>e?1:0}var D=class{constructor(e,t){
this.source=e;this.query=t.toLowerCase()}texts=new Map;stacks=new Map;query;has(e){return e!==null&&e.toLowerCase().includes(
this.query)}text(e){let t=this.texts.get(e);return t===void 0&&this.texts.set(e,t=this.has(this.source.text(e))),t}stack(e){
let t=this.stacks.get(e);return t===void 0&&(t=this.source.frames(e).some(s=>this.has(s.file)||this.has(s.function)||this.
has(H(s))),this.stacks.set(e,t)),t}row(e,t){return this.text(e.tensor[t])||this.text(e.keys.module[t])||this.stack(e.stack[t])}};var K=20,ut=40;function Be(r,e,t,s){return{name:r,kind:e,bytes:0,matches:!1,parent:t,children:new Map,source:s}}function ht(r,e,t,s){
let n=r;n.bytes+=t;for(let[i,o,a]of e){let u=n.children.get(i);u||n.children.set(i,u=Be(i,o,n,a)),u.bytes+=t,u.matches||=
s,n=u}}function dt(r,e,t,s,n){let i=Be(l("total"),3,null,null),o=n?new D(r,n):null,a=new Map,u=h=>{let d=a.get(h);return d||
(d=r.frames(h).filter(m=>!s||m.kind===0).reverse().slice(0,ut).map(m=>[H(m),m.kind,m.source]),d.length===0&&(d=[[l("noSt\
ack"),2,null]]),a.set(h,d)),d};for(let h=0;h<e.n;h++){let d=t?(r.text(e.keys.module[h])?.split(".")??[l("unknown")]).map(
m=>[m,4,null]):u(e.stack[h]);ht(i,d,e.bytes[h],o!==null&&o.row(e,h))}return i}var oe=class{constructor(e){this.state=e;let t=c(
"div.plot",{},this.canvas,this.tip);this.element=c("div",{},this.tools,t,this.way),this.fillTools(),this.canvas.addEventListener(
"click",s=>this.open(this.boxAt(s))),this.canvas.addEventListener("pointermove",s=>this.point(s)),this.canvas.addEventListener(
"pointerleave",()=>{this.tip.hidden=!0}),this.canvas.addEventListener("keydown",s=>this.key(s)),new ResizeObserver(this.
redraw).observe(t)}element;canvas=c("canvas",{tabindex:0,role:"img","data-plot":"icicle"});tip=c("div.tip",{hidden:!0});tools=c(
"div.tools");way=c("p.faint.note",{"aria-live":"polite"});boxes=[];root;top;rows=null;byModule=!1;ownOnly=!1;redraw=F(()=>this.
draw());show(e){this.rows=e,this.root=dt(this.state.source,e,this.byModule,this.ownOnly,this.state.view.query),this.top=
this.root,this.redraw()}fillTools(){let e=(t,s,n)=>c("button",{type:"button","aria-pressed":String(s),click:()=>{n(),this.
fillTools(),this.rows&&this.show(this.rows)}},t);y(this.tools,c("div.choices",{role:"group","aria-label":l("icicle")},e(
l("icicleStack"),!this.byModule,()=>{this.byModule=!1}),e(l("icicleModule"),this.byModule,()=>{this.byModule=!0})),!this.
byModule&&c("div.choices",{role:"group"},e(l("allFrames"),!this.ownOnly,()=>{this.ownOnly=!1}),e(l("ownFrames"),this.ownOnly,
()=>{this.ownOnly=!0})))}key(e){let t=[...this.top.children.values()].sort((o,a)=>a.bytes-o.bytes),s=this.top.parent?[...this.
top.parent.children.values()].sort((o,a)=>a.bytes-o.bytes):[this.top],n=s.indexOf(this.top),i={Escape:this.top.parent,Backspace:this.
top.parent,ArrowUp:this.top.parent,ArrowDown:t[0],Enter:t[0],ArrowRight:s[n+1],ArrowLeft:s[n-1],Home:this.root};e.key in
i&&(e.preventDefault(),this.open(i[e.key]??null))}open(e){e&&(this.top=e===this.top&&e.parent?e.parent:e,this.redraw())}boxAt(e){
let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top;return this.boxes.find(i=>s>=i.x&&s<i.x+i.
w&&n>=i.y&&n<i.y+K)?.node??null}point(e){let t=this.boxAt(e),s=this.canvas.getBoundingClientRect();if(this.tip.hidden=t===
null,!t)return;y(this.tip,c("b",{},t.name),t.source&&c("code.source",{},t.source),c("div.row",{},c("span",{},l("size")),
c("b",{},p(t.bytes))),c("div.row",{},c("span",{},l("share")),c("span",{},B(t.bytes,this.root.bytes))));let n=e.clientX-s.
left,i=n>s.width/2;this.tip.style.left=i?"":`${n+14}px`,this.tip.style.right=i?`${s.width-n+14}px`:"",this.tip.style.top=
`${e.clientY-s.top+16}px`}layOut(e){this.boxes=[];let t=[];for(let i=this.top.parent;i;i=i.parent)t.unshift(i);t.forEach(
(i,o)=>this.boxes.push({node:i,x:0,y:o*K,w:e}));let s=t.length,n=(i,o,a,u)=>{s=Math.max(s,u),this.boxes.push({node:i,x:o,
y:u*K,w:a});let h=o;for(let d of[...i.children.values()].sort((m,f)=>f.bytes-m.bytes)){let m=a*d.bytes/i.bytes;m>=1&&n(d,
h,m,u+1),h+=m}};return this.top.bytes>0&&n(this.top,0,e,t.length),(s+1)*K}colour(e){return e.kind===3?g("--rest"):e.kind===
4?e.name===l("unknown")?g("--rest"):pt(e.name):`color-mix(in srgb, ${g(e.kind===0?"--own":e.kind===1?"--library":"--inne\
r")} ${100-mt(e.name)}%, #000)`}draw(){if(!this.element.isConnected||!this.root)return;let e=this.canvas.parentElement.clientWidth,
t=this.layOut(e),s=E(this.canvas,t),n=this.state.view.query;s.font="12px system-ui, sans-serif",s.textBaseline="middle";
for(let i of this.boxes)s.globalAlpha=n&&i.node.kind!==3&&!i.node.matches?.3:1,s.fillStyle=this.colour(i.node),s.fillRect(
i.x,i.y,Math.max(1,i.w-1),K-1),!(i.w<34)&&(s.fillStyle=i.node.kind===3?g("--text"):"#fff",s.fillText(vt(s,`${ft(i.node)}\
  ${p(i.node.bytes)}`,i.w-10),i.x+5,i.y+K/2));s.globalAlpha=1,this.canvas.setAttribute("aria-label",`${l("icicle")}: ${this.
top.name}, ${p(this.top.bytes)}. `+[...this.top.children.values()].sort((i,o)=>o.bytes-i.bytes).slice(0,5).map(i=>`${i.name}\
 ${p(i.bytes)}`).join("; ")),y(this.way,l("icicleHint"))}};function mt(r){let e=0;for(let t=0;t<r.length;t++)e=Math.imul(
31,e)+r.charCodeAt(t)>>>0;return e%4*8}function pt(r){return`color-mix(in srgb, ${S(r)} 78%, #000)`}function ft(r){if(r.
kind>2)return r.name;let[e,...t]=r.name.split(" "),s=t.join(" "),n=e.slice(e.lastIndexOf("/")+1);return s?`${s}  ${n}`:n}
function vt(r,e,t){if(r.measureText(e).width<=t)return e;let s=0,n=e.length;for(;s<n;){let i=s+n+1>>1;r.measureText(`${e.
slice(0,i)}\u2026`).width<=t?s=i:n=i-1}return s>1?`${e.slice(0,s)}\u2026`:""}function bt(r,e,t,s,n){let i=[];for(let a=0;a<r.n&&r.alloc[a]<=s;a++){if(r.free[a]<t||r.device[a]!==e)continue;let u=Math.
min(r.free[a],s)-Math.max(r.alloc[a],t);i.push({block:a,area:r.size[a]*Math.max(u,(s-t)/4e3)})}i.sort((a,u)=>u.area-a.area);
let o=i.slice(0,n).map(a=>a.block).sort((a,u)=>a-u);return{chosen:o,hidden:i.length-o.length}}function Re(r,e,t,s,n=1200){
let{chosen:i,hidden:o}=bt(r,e,t,s,n),a=i.flatMap((h,d)=>[{ns:Math.max(r.alloc[h],t),i:d,isFree:!1},...r.free[h]<s?[{ns:r.
free[h],i:d,isFree:!0}]:[]]);a.sort((h,d)=>h.ns-d.ns||Number(d.isFree)-Number(h.isFree)||h.i-d.i);let u=i.map(h=>({block:h,
from:Math.max(r.alloc[h],t),to:Math.min(r.free[h],s),times:[],levels:[]}));return{strips:u,hidden:o,top:yt(r,u,a)}}function yt(r,e,t){
let s=[],n=0,i=0;for(let o of t){let a=r.size[e[o.i].block];if(!o.isFree){e[o.i].times.push(o.ns),e[o.i].levels.push(n),
s.push(o.i),n+=a,i=Math.max(i,n);continue}let u=s.indexOf(o.i);if(!(u<0)){s.splice(u,1),n-=a;for(let h=u;h<s.length;h++){
let d=e[s[h]],m=d.levels[d.levels.length-1]-a;d.times[d.times.length-1]===o.ns?d.levels[d.levels.length-1]=m:(d.times.push(
o.ns),d.levels.push(m))}}}return i}function ye(r,e,t,s){for(let n of e.strips){if(t<n.from||t>n.to)continue;let i=n.times.
length-1;for(;i>0&&n.times[i]>t;)i--;if(s>=n.levels[i]&&s<n.levels[i]+r.size[n.block])return n}return null}var Ce=14,v={left:70,right:10,top:18,bottom:24};function gt(r,e){let t=0;return r.map(s=>{if(s.others>0)return S("other");
if(s.key===null||e!=="module")return S(s.key);let n=t++,i=_[n%_.length];return n<_.length?i:`color-mix(in srgb, ${i} 55%\
, ${n%20<10?"#fff":"#000"})`})}function U(r){return r.others>0?l("others",w(r.others)):r.key??l("unknown")}var ae=class{constructor(e){
this.state=e;this.source=e.source;let t=c("div.plot",{},this.canvas,this.overlay,this.tip);this.element=c("section",{id:"\
timeline"},c("h2",{},l("timeline")),this.tools,this.legend,t,c("div.plot",{},this.overview),this.chosen,this.note,this.values),
this.listen(t),this.fillTools(),e.listen(s=>{("by"in s||"strips"in s||"device"in s)&&this.fillTools(),this.redraw()}),new ResizeObserver(
this.redraw).observe(t)}element;canvas=c("canvas",{tabindex:0,role:"img","data-plot":"timeline"});overlay=c("canvas.over\
lay",{"aria-hidden":"true"});overview=c("canvas.overview",{"aria-hidden":"true"});tip=c("div.tip",{hidden:!0});legend=c(
"div.legend");tools=c("div.tools");note=c("p.faint.note");chosen=c("div.chosen",{hidden:!0,"aria-live":"polite"});values=c(
"details",{toggle:()=>this.fillValues()});bins;colours=[];strips=null;top=1;hover=null;redraw=F(()=>this.draw());rehover=F(
()=>this.drawHover());source;fillTools(){let e=this.state.view,t=this.state,s=(a,u,h)=>c("button",{type:"button","aria-p\
ressed":String(u),click:h},a),n=c("div.choices",{role:"group","aria-label":l("by")},$.map(a=>s(l(a),e.by===a&&!e.strips,
()=>t.change({by:a,strips:!1}))),s(l("blocks"),e.strips,()=>t.change({strips:!0}))),i=this.source.devices.length<2?null:
c("select",{"aria-label":l("deviceLabel"),change:a=>t.change({device:a.target.selectedIndex})},this.source.devices.map((a,u)=>c(
"option",{selected:u===e.device},a))),o=(a,u,h)=>c("button",{type:"button","aria-label":a,title:a,click:h},u);y(this.tools,
n,i,c("div.choices",{role:"group"},o(l("zoomIn"),"+",()=>this.zoom(.5)),o(l("zoomOut"),"\u2212",()=>this.zoom(2)),o(l("l\
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
-200,200)/300),this.timeAt(t)))}pinch(e,t,s){let n=[...e].find(([u])=>u!==t)[1],i=e.get(t),o=Math.abs(i-n),a=Math.abs(s-
n);o>10&&a>10&&this.zoom(o/a,this.timeAt((s+n)/2))}key(e){let{from:t,to:s,cursor:n}=this.state.view,o={"+":()=>this.zoom(
.6),"=":()=>this.zoom(.6),"-":()=>this.zoom(1/.6),0:()=>this.state.change({from:this.source.start,to:this.source.end}),Home:()=>this.
state.change({from:this.source.start,to:this.source.end}),p:()=>this.toPeak(),b:()=>this.state.change({strips:!this.state.
view.strips}),Escape:()=>this.state.change({cursor:null}),ArrowLeft:()=>e.shiftKey?this.moveCursor(-1):this.pan(-.1),ArrowRight:()=>e.
shiftKey?this.moveCursor(1):this.pan(.1),Enter:()=>this.look(this.xOf(n??(t+s)/2))}[e.key];!o||e.ctrlKey||e.metaKey||e.altKey||
(e.preventDefault(),o())}moveCursor(e){let{from:t,to:s,cursor:n}=this.state.view,i=(s-t)/this.plotWidth()*4;this.state.change(
{cursor:O((n??(t+s)/2)+e*i,t,s)})}look(e,t=-1){if(e<v.left)return;let s=this.strips?ye(this.source.blocks,this.strips,this.
timeAt(e),this.levelAt(t)):null;this.chosen.hidden=s===null,s&&y(this.chosen,this.blockTip(s.block),this.wholeStack(s.block));
let n=this.timeAt(e),i=this.binAt(n);this.state.change({cursor:this.bins.exact||this.state.view.strips?n:this.bins.at[i]})}listenOverview(){
let e=!1,t=s=>{let n=this.overview.getBoundingClientRect(),{from:i,to:o}=this.state.view,a=(s.clientX-n.left-v.left)/(n.
width-v.left-v.right)*this.source.end;this.state.change({from:a-(o-i)/2,to:a+(o-i)/2})};this.overview.addEventListener("\
pointerdown",s=>{e=!0,this.overview.setPointerCapture(s.pointerId),t(s)}),this.overview.addEventListener("pointermove",s=>{
e&&t(s)}),this.overview.addEventListener("pointerup",()=>{e=!1})}get height(){return window.innerWidth<600?240:300}plotWidth(){
return Math.max(50,this.canvas.parentElement.clientWidth-v.left-v.right)}plotHeight(){return this.height-v.top-v.bottom}timeAt(e){
let{from:t,to:s}=this.state.view;return t+O((e-v.left)/this.plotWidth(),0,1)*(s-t)}xOf(e){let{from:t,to:s}=this.state.view;
return v.left+(e-t)/(s-t)*this.plotWidth()}levelAt(e){return(1-(e-v.top)/this.plotHeight())*this.top}yOf(e){return v.top+
(1-e/this.top)*this.plotHeight()}binAt(e){return O(Math.floor((e-this.bins.start)/this.bins.width),0,this.bins.n-1)}limit(){
return te(this.source,this.source.devices[this.state.view.device])}read(){let e=this.state.view;this.bins=this.source.bins(
e.device,e.from,e.to,this.plotWidth(),e.by),this.colours=gt(this.bins.keys,e.by),this.strips=e.strips?Re(this.source.blocks,
e.device,e.from,e.to):null;let t=1;for(let n=0;n<this.bins.n;n++)t=Math.max(t,this.bins.max[n],this.bins.reserved[n]-1,this.
bins.used[n]-1);let s=this.limit();s!==null&&s<=t*1.6&&(t=Math.max(t,s)),this.top=t*1.04}draw(){if(!this.element.isConnected||
this.source.devices.length===0)return;this.read();let e=E(this.canvas,this.height);this.drawGrid(e),e.save(),e.beginPath(),
e.rect(v.left,v.top,this.plotWidth(),this.plotHeight()),e.clip(),this.strips?this.drawStrips(e,this.strips):this.drawLayers(
e),this.drawLines(e),e.restore(),this.drawMarks(e),this.drawOverview(),this.drawHover(),this.tellSoon()}tellSoon(){let e=performance.
now();if(clearTimeout(this.timer),e-this.told<200){this.timer=window.setTimeout(()=>this.tellSoon(),200);return}this.told=
e,this.fillLegend(),this.describe()}told=-1/0;timer=0;drawGrid(e){let{from:t,to:s}=this.state.view,n=this.plotWidth(),i=this.
plotHeight();e.font="11px system-ui, sans-serif",e.strokeStyle=g("--grid"),e.fillStyle=g("--faint"),e.lineWidth=1,e.textAlign=
"right",e.textBaseline="middle";let o=ie(this.top,5);for(let h=0;h<=this.top;h+=o){let d=Math.round(this.yOf(h))+.5;z(e,
v.left,d,v.left+n,d),e.fillText(p(h),v.left-6,d)}e.textAlign="center",e.textBaseline="top";let a=I(s-t,n/85),u=this.source.
offset;for(let h=Math.ceil((t+u)/a)*a;h<=s+u;h+=a){let d=Math.round(this.xOf(h-u))+.5;z(e,d,v.top+i,d,v.top+i+4),e.fillText(
A(h,a,s+u),O(d,v.left+20,v.left+n-24),v.top+i+7)}this.drawSteps(e)}drawSteps(e){let t=this.source.column("steps.start"),
s=this.source.column("steps.step"),{from:n,to:i}=this.state.view,o=ge(t,n),a=ge(t,i);if(a-o>this.plotWidth())return;let u=this.
source.process.ooms.map(h=>this.xOf(h.time_ns-this.source.offset));e.textAlign="left",e.textBaseline="bottom";for(let h=o,
d=-1/0,m=-1/0;h<a;h++){let f=Math.round(this.xOf(t[h]))+.5,b=h+1<t.length?this.xOf(t[h+1]):1/0;f-d<12||b-f<12||(z(e,f,v.
top-4,f,v.top+this.plotHeight()),d=f,!(f-m<60||b-f<40||f>v.left+this.plotWidth()-50||u.some(x=>Math.abs(x-f-25)<45))&&(e.
fillText(`${l("step")} ${s[h]}`,f+3,v.top),m=f))}}drawLayers(e){let t=this.bins,s=t.n,n=new Float64Array(s),i=new Float64Array(
s+1);for(let o=0;o<=s;o++)i[o]=this.xOf(t.start+o*t.width);t.layers.forEach((o,a)=>{e.fillStyle=this.colours[a],e.beginPath();
for(let u=0;u<s;u++){let h=this.yOf(n[u]+o[u]);e.lineTo(i[u],h),e.lineTo(i[u+1],h)}for(let u=s-1;u>=0;u--){let h=this.yOf(
n[u]);e.lineTo(i[u+1],h),e.lineTo(i[u],h)}e.fill();for(let u=0;u<s;u++)n[u]+=o[u]})}drawStrips(e,t){let s=this.source.blocks,
n=this.state.view.by,i=s.keys[n],o=new Map(this.bins.keys.map((u,h)=>[u.others?"\0":u.key,this.colours[h]])),a=this.state.
view.query?new D(this.source,this.state.view.query):null;this.fillTotal(e,g("--rest")),e.lineWidth=.5,e.strokeStyle=g("-\
-surface");for(let u of t.strips){let h=this.source.text(i[u.block]);e.globalAlpha=a&&!a.row(s,u.block)?.15:1,e.fillStyle=
o.get(h)??o.get("\0")??S(h),this.stripPath(e,u),e.fill(),s.size[u.block]/this.top*this.plotHeight()>5&&e.stroke()}e.globalAlpha=
1}stripPath(e,t){let s=this.source.blocks.size[t.block];e.beginPath();for(let n=0;n<t.times.length;n++){let i=this.yOf(t.
levels[n]);e.lineTo(this.xOf(t.times[n]),i),e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),i)}for(let n=t.times.
length-1;n>=0;n--){let i=this.yOf(t.levels[n]+s);e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),i),e.lineTo(this.
xOf(t.times[n]),i)}e.closePath()}fillTotal(e,t){let s=this.bins;e.fillStyle=t,e.beginPath(),e.moveTo(this.xOf(s.start),this.
yOf(0));for(let n=0;n<s.n;n++)e.lineTo(this.xOf(s.start+n*s.width),this.yOf(s.max[n])),e.lineTo(this.xOf(s.start+(n+1)*s.
width),this.yOf(s.max[n]));e.lineTo(this.xOf(s.start+s.n*s.width),this.yOf(0)),e.fill()}series(e,t,s){let n=this.bins;e.
beginPath();let i=!1;for(let o=0;o<n.n;o++){if(t[o]-s<0){i=!1;continue}let a=this.xOf(n.start+o*n.width),u=this.yOf(t[o]-
s);i?e.lineTo(a,u):e.moveTo(a,u),e.lineTo(this.xOf(n.start+(o+1)*n.width),u),i=!0}e.stroke()}drawLines(e){e.lineWidth=1,
e.strokeStyle=g("--least"),this.strips||this.series(e,this.bins.min,0),e.lineWidth=1.5,e.strokeStyle=g("--reserved"),this.
series(e,this.bins.reserved,1),e.setLineDash([5,3]),e.strokeStyle=g("--device"),this.series(e,this.bins.used,1);let t=this.
limit();t!==null&&t<=this.top&&(e.strokeStyle=g("--bad"),e.setLineDash([8,4]),z(e,v.left,this.yOf(t),v.left+this.plotWidth(),
this.yOf(t))),e.setLineDash([])}drawMarks(e){let t=this.source.offset,s=v.top+this.plotHeight(),n=o=>o>=v.left-1&&o<=v.left+
this.plotWidth()+1;e.textAlign="center",e.textBaseline="bottom",e.font="bold 11px system-ui, sans-serif";for(let o of this.
source.process.marks){let a=this.xOf(o.time_ns-t);n(a)&&(e.fillStyle=g("--accent"),e.beginPath(),e.moveTo(a,s-8),e.lineTo(
a+5,s),e.lineTo(a-5,s),e.fill())}for(let o of this.source.process.ooms){let a=this.xOf(o.time_ns-t);!n(a)||o.device!==this.
source.devices[this.state.view.device]||(e.strokeStyle=e.fillStyle=g("--bad"),e.lineWidth=1.5,z(e,a,v.top,a,s),e.fillText(
"OOM",O(a,v.left+14,v.left+this.plotWidth()-14),v.top-2))}let i=this.state.view.cursor;i!==null&&n(this.xOf(i))&&(e.strokeStyle=
g("--accent"),e.lineWidth=2,z(e,this.xOf(i),v.top,this.xOf(i),s))}drawOverview(){let t=E(this.overview,40),s=this.plotWidth(),
n=this.state.view,i=this.source.bins(n.device,this.source.start,this.source.end,s,n.by),o=1;for(let h=0;h<i.n;h++)o=Math.
max(o,i.max[h]);t.fillStyle=g("--rest");for(let h=0;h<i.n;h++){let d=v.left+h/i.n*s,m=40-i.max[h]/o*36;t.fillRect(d,m,Math.
max(1,s/i.n+.3),40-m)}let a=v.left+n.from/this.source.end*s,u=v.left+n.to/this.source.end*s;t.fillStyle=g("--shade"),t.fillRect(
v.left,0,a-v.left,40),t.fillRect(u,0,v.left+s-u,40),t.strokeStyle=g("--accent"),t.lineWidth=2,t.strokeRect(a,1,Math.max(
2,u-a),38)}drawHover(){let e=E(this.overlay,this.height),t=this.hover,s=t&&this.bins&&t.x>=v.left&&t.x<=v.left+this.plotWidth();
if(this.tip.hidden=!s,!t||!s)return;e.strokeStyle=g("--text"),e.globalAlpha=.6,z(e,t.x,v.top,t.x,v.top+this.plotHeight()),
this.brush!==null&&(e.fillStyle=g("--accent"),e.globalAlpha=.2,e.fillRect(Math.min(this.brush,t.x),v.top,Math.abs(t.x-this.
brush),this.plotHeight()));let n=this.timeAt(t.x),i=this.levelAt(t.y),o=this.strips?ye(this.source.blocks,this.strips,n,
i):null;o&&(e.globalAlpha=1,e.lineWidth=2,this.stripPath(e,o),e.stroke()),y(this.tip,o?this.blockTip(o.block):this.binTip(
n,i));let a=t.x>v.left+this.plotWidth()/2;this.tip.style.left=a?"":`${t.x+14}px`,this.tip.style.right=a?`${this.tip.parentElement.
clientWidth-t.x+14}px`:"",this.tip.style.top=`${Math.min(t.y,60)}px`}stepAt(e){let t=this.source.column("steps.start"),s=this.
source.column("steps.end"),n=ge(t,e+1)-1;return n>=0&&e<=s[n]?this.source.column("steps.step")[n]:null}when(e){let t=this.
stepAt(e),{from:s,to:n}=this.state.view,i=A(e+this.source.offset,(n-s)/1e3);return t===null?i:`${i} \xB7 ${l("step")} ${t}`}binTip(e,t){
let s=this.bins,n=this.binAt(e),i=this.source.process.marks.filter(d=>Math.abs(this.xOf(d.time_ns-this.source.offset)-this.
xOf(e))<5),o=s.layers.map((d,m)=>({k:m,value:d[n]})).filter(d=>d.value>0),a=0,u=-1;for(let d of o)t>=a&&t<a+d.value&&(u=
d.k),a+=d.value;o.sort((d,m)=>m.value-d.value);let h=o.slice(0,9);return[c("b",{},this.when(s.exact?e:s.at[n])),...i.map(
d=>c("div.mark",{},`\u25B2 ${d.name??""} ${d.text}`)),c("div.row",{},c("span",{},l("allocated")),c("b",{"data-value":"al\
located"},p(s.max[n]))),...this.strips?[]:h.map(d=>c(d.k===u?"div.row.under":"div.row",{},c("span",{},P(this.colours[d.k]),
U(s.keys[d.k])),c("span",{},p(d.value)))),...s.reserved[n]>0?[c("div.row",{},c("span",{},l("reserved")),c("span",{},p(s.
reserved[n]-1)))]:[],...s.used[n]>0?[c("div.row",{},c("span",{},l("used")),c("span",{},p(s.used[n]-1)))]:[]]}blockTip(e){
let t=this.source.blocks,s=this.source.frames(t.stack[e]),n=this.source.text(t.tensor[e]),i=this.source.offset,o=(u,h)=>h===
null?[]:[c("div.row",{},c("span",{},u),c("span",{},h))],a=t.free[e]===1/0?l("stillAlive"):R(t.free[e]-t.alloc[e]);return[
c("b",{},n??l("block")),...o(l("size"),p(t.size[e])),...$.flatMap(u=>o(l(u),this.source.text(t.keys[u][e]))),...o(l("all\
ocatedAt"),A(t.alloc[e]+i,Math.max(1,(this.state.view.to-this.state.view.from)/1e3))),...o(l("lifetime"),a),...o(l("step"),
t.step[e]>0?String(t.step[e]-1):null),c("code",{},s.length?H(C(s)):l("noStack")),...C(s)?.source?[c("code.source",{},C(s).
source)]:[]]}wholeStack(e){return c("ol.stack",{},this.source.frames(this.source.blocks.stack[e]).map(t=>c("li",{},c(t.kind===
0?"code.own":"code",{},H(t)),t.source&&c("code.source",{},t.source))))}fillLegend(){let e=this.bins,t=(u,h)=>c("span",{},
c(`i.${u}`),h),s=e.keys.map((u,h)=>({k:u,i:h,most:Math.max(...e.layers[h])})).filter(u=>u.most>0),n=s.map(u=>u.most).sort(
(u,h)=>h-u)[Ce-1]??0,i=s.filter(u=>u.most>=n).slice(0,Ce),o=u=>u.some(h=>h>0),a=this.limit();y(this.legend,i.reverse().map(
({k:u,i:h})=>c("span",{},P(this.colours[h]),U(u))),s.length>i.length&&c("span",{},`+ ${s.length-i.length}`),this.strips&&
c("span",{},P(g("--rest")),l("smaller")),o(e.reserved)&&t("line-reserved",l("reserved")),o(e.used)&&t("line-used",l("use\
d")),a!==null&&t("line-limit",`${l("limit")} ${p(a)}`),!this.strips&&!e.exact&&t("line-least",l("least")))}describe(){let e=this.
bins,{from:t,to:s}=this.state.view,n=this.source.offset,i=0;for(let u=1;u<e.n;u++)e.max[u]>e.max[i]&&(i=u);let o=Math.max(
1,(s-t)/100);this.canvas.setAttribute("aria-label",`${l("timeline")}: ${A(t+n,o)} \u2013 ${A(s+n,o)}, ${l("peakFigure")}\
 ${p(e.max[i])} ${l("at",A(e.at[i]+n,o))}. ${l("hint")}`);let a=R(e.width);y(this.note,e.exact?l("exact"):l("binned",a),
". ",l("hint")),y(this.values,c("summary",{},l("table"))),this.values.open&&this.fillValues()}fillValues(){if(!this.values.
open||this.values.childElementCount>1)return;let e=this.state.view,t=this.source.bins(e.device,e.from,e.to,24,e.by),s=Array.
from({length:t.n},(n,i)=>[this.when(t.start+i*t.width),p(t.max[i]),t.keys.map((o,a)=>({k:o,value:t.layers[a][i]})).sort(
(o,a)=>a.value-o.value).slice(0,3).filter(o=>o.value>0).map(o=>`${U(o.k)} ${p(o.value)}`).join(", "),t.reserved[i]>0?p(t.
reserved[i]-1):"-"]);this.values.append(k([l("time"),l("allocated"),l(e.by),l("reserved")],s,[1,3]))}};function z(r,e,t,s,n){
r.beginPath(),r.moveTo(e,t),r.lineTo(s,n),r.stroke()}function ge(r,e){let t=0,s=r.length;for(;t<s;){let n=t+s>>1;r[n]<e?
t=n+1:s=n}return t}var wt=[...$,"line","tensor"],we=40,le=class{constructor(e){this.state=e;this.icicle=new oe(e),this.element=c("section",
{id:"peak"},c("h2",{},l("peak")),this.head,c("div.halves",{},c("div",{},this.tools,this.sums),this.icicle.element)),e.listen(
t=>{("cursor"in t||"device"in t||"query"in t||"other"in t)&&this.refresh()}),this.refresh()}element;head=c("div.tools");tools=c(
"div.tools");sums=c("div");icicle;by="category";rows=null;total=0;others=null;refresh(){let{cursor:e,device:t}=this.state.
view,s=this.state.source,n=s.drawn.peak;e===null?(this.rows=s.peakRows,this.total=n?.bytes??0):(this.rows=s.hasAll(e,e)?
be(s,t,e):null,this.total=this.rows?this.rows.bytes.reduce((i,o)=>i+o,0):this.binAt(e).max),!this.rows&&(this.by==="line"||
this.by==="tensor")&&(this.by="category"),this.fillHead(),this.fillTools(),this.fillSums(),this.icicle.element.hidden=!this.
rows,this.rows&&this.icicle.show(this.rows)}sumsAt(e){let t=this.state.source;return e===null?re(t,t.peakRows,this.by):t.
hasAll(e,e)?re(t,be(t,this.state.view.device,e),this.by):this.binAt(e).layers}binAt(e){let t=this.by==="line"||this.by===
"tensor"?"category":this.by,s=this.state.source.end/this.state.source.drawn.timeline.bins,n=this.state.source.bins(this.
state.view.device,e,e+s/100,.01,t),i=Math.max(0,Math.min(n.n-1,Math.floor((e-n.start)/n.width))),o=n.keys.map((a,u)=>({key:U(
a),bytes:n.layers[u][i],blocks:NaN,stack:0}));return{max:n.max[i],layers:o.filter(a=>a.bytes>0).sort((a,u)=>u.bytes-a.bytes)}}fillHead(){
let{cursor:e}=this.state.view,t=this.state.source,s=t.offset,n=e??t.drawn.peak?.time_ns??0,i=L(n+s);y(this.head,c("b",{"\
data-value":"moment"},e===null?l("peakMoment",i):l("moment",i)),c("span",{"data-value":"total","data-exact":this.total},
ne(this.total)),e!==null&&c("button",{type:"button",click:()=>this.state.change({cursor:null})},l("backToPeak")),this.state.
view.other===null?c("button",{type:"button",click:()=>this.state.change({other:e??-1})},l("compare")):c("span",{},l("com\
paredWith",this.state.view.other<0?l("toPeak"):L(this.state.view.other+s))," ",c("button",{type:"button",click:()=>this.
state.change({other:null})},l("stopComparing"))))}fillTools(){let e=this.rows?wt:$;y(this.tools,c("div.choices",{role:"g\
roup","aria-label":l("composition")},e.map(t=>c("button",{type:"button","aria-pressed":String(t===this.by),click:()=>{this.
by=t,this.fillTools(),this.fillSums()}},l(t)))))}fillSums(){let e=this.state.source,t=this.state.view.query,s=this.rows,
n=t&&s?new D(e,t):null,i=s?re(e,s,this.by,n?u=>n.row(s,u):void 0):this.binAt(this.state.view.cursor??0).layers,o=i.reduce(
(u,h)=>u+h.bytes,0),{other:a}=this.state.view;if(this.others=a===null?null:new Map(this.sumsAt(a<0?null:a).map(u=>[u.key,
u.bytes])),this.others&&!n){let u=new Set(i.map(h=>h.key));for(let h of this.others.keys())u.has(h)||i.push({key:h,bytes:0,
blocks:0,stack:0});i.sort((h,d)=>Math.abs(this.changeOf(d))-Math.abs(this.changeOf(h))||d.bytes-h.bytes)}y(this.sums,n&&
c("p.found",{"data-value":"found"},i.length?l("results",p(o)):l("noMatch")),k([this.by==="line"?l("place"):l("name"),l("\
size"),l("share"),l("blocksHead"),this.others?l("change"):""],i.slice(0,we).map(u=>this.row(u)),[1,2,3]),i.length>we&&c(
"p.faint",{},l("shown",we,w(i.length)))),this.sums.dataset.by=this.by}row(e){let t=this.by==="line"||this.by==="tensor"?
"var(--accent)":S(e.key),s=this.by==="line"?C(this.state.source.frames(e.stack))?.source:null,n=c("span",{title:e.key??"",
"data-key":e.key??l("unknown"),"data-exact":e.bytes},e.key??l("unknown"));return[c(this.by==="line"?"div.key.mono":"div.\
key",{},this.by!=="line"&&this.by!=="tensor"&&P(t),n,s&&c("code.source",{},s)),p(e.bytes),B(e.bytes,this.total),Number.isNaN(
e.blocks)?"-":w(e.blocks),this.others?this.change(e):T(e.bytes/Math.max(1,this.total),t)]}changeOf(e){return e.bytes-(this.
others?.get(e.key)??0)}change(e){let t=this.changeOf(e);return c(t>0?"span.more":"span.less",{"data-change":t},t===0?"=":
`${t>0?"+":""}${p(t)}`)}};var Y=r=>r===null?"-":p(r),ce=class{element=c("main");async refresh(){let e=await(await j("api/node")).json();y(this.element,
c("section",{id:"devices"},c("h2",{},l("devices")),k([l("name"),l("usedHead"),l("totalHead"),""],e.devices.map(t=>[t.device,
Y(t.used),Y(t.total),t.used!==null&&t.total?T(t.used/t.total,"var(--accent)"):""]),[1,2])),c("section",{id:"jobs"},c("h2",
{},l("jobs")),e.processes.length===0?c("p",{},l("noJobs")):k(["PID",l("deviceLabel"),l("allocatedHead"),l("reservedHead"),
l("peakFigure"),l("command")],e.processes.map(t=>[c("a",{href:`?pid=${t.pid}`},t.pid),t.device??"-",Y(t.allocated),Y(t.reserved),
Y(t.peak),t.command??"-"]),[2,3,4])))}};function kt(r,e){let t=r.column(`bins.${e}.max`),s=t.reduce((o,a)=>Math.max(o,a),1),i=t.findIndex(o=>o>s*.01)/Math.max(1,
t.length);return i>.25?r.end*Math.max(0,i-(1-i)*.04):r.start}var ue=class{constructor(e){this.source=e;let t=e.drawn.peak?.
device??0;this.view={from:kt(e,t),to:e.end,device:t,by:"category",strips:!1,cursor:null,other:null,query:""},this.read()}view;listeners=[];listen(e){
this.listeners.push(e)}change(e){Object.assign(this.view,e),this.keepInside(),this.writeSoon();for(let t of this.listeners)
t(e)}keepInside(){let e=this.view,{start:t,end:s}=this.source,n=Math.min(s-t,Math.max(20,e.to-e.from));e.from=Math.max(t,
Math.min(e.from,s-n)),e.to=e.from+n}get isWhole(){return this.view.from<=this.source.start&&this.view.to>=this.source.end}seconds(e){
return String(Math.round(e+this.source.offset)/1e9)}writeSoon(){clearTimeout(this.timer),this.timer=window.setTimeout(()=>this.
write(),150)}timer=0;write(){let e=this.view,t=[];this.isWhole||t.push(`t=${this.seconds(e.from)}-${this.seconds(e.to)}`),
e.by!=="category"&&t.push(`by=${e.by}`),e.strips&&t.push("blocks=1"),e.device!==(this.source.drawn.peak?.device??0)&&t.push(
`device=${e.device}`),e.cursor!==null&&t.push(`at=${this.seconds(e.cursor)}`),e.other!==null&&t.push(`with=${e.other<0?"\
peak":this.seconds(e.other)}`),e.query&&t.push(`q=${encodeURIComponent(e.query)}`);let s=t.length?`#${t.join("&")}`:"#";
s!==(location.hash||"#")&&history.replaceState(null,"",s)}read(){let e=new URLSearchParams(location.hash.slice(1)),t=this.
view,s=h=>Number(h)*1e9-this.source.offset,n=/^([\d.]+)-([\d.]+)$/.exec(e.get("t")??"");n&&s(n[2])>s(n[1])&&(t.from=s(n[1]),
t.to=s(n[2]));let i=e.get("by");i&&$.includes(i)&&(t.by=i),t.strips=e.get("blocks")==="1";let o=Number(e.get("device")??
t.device);Number.isInteger(o)&&o>=0&&o<this.source.devices.length&&(t.device=o);let a=e.get("at");a!==null&&Number.isFinite(
Number(a))&&(t.cursor=s(a));let u=e.get("with");u==="peak"?t.other=-1:u!==null&&Number.isFinite(Number(u))&&(t.other=s(u)),
t.query=e.get("q")??"",this.keepInside()}};var M={left:70,right:10,top:8,bottom:22},V=class{constructor(e,t){this.curves=e;this.options=t;this.canvas=c("canvas",{role:"\
img","aria-label":t.label,"data-plot":"curves"});let s=c("div.plot",{},this.canvas,this.tip);this.element=c("div",{},s,c(
"div.legend",{},e.length<9&&e.map(n=>{let i=c("i.swatch");return i.style.background=n.colour,c("span",{},i,n.name)}))),this.
canvas.addEventListener("pointermove",n=>this.point(n)),this.canvas.addEventListener("pointerleave",()=>{this.tip.hidden=
!0}),t.click&&(this.canvas.style.cursor="pointer",this.canvas.addEventListener("click",n=>t.click(this.placeAt(n)))),new ResizeObserver(
this.redraw).observe(s)}element;canvas;tip=c("div.tip",{hidden:!0});redraw=F(()=>this.draw());top=1;get n(){return Math.
max(1,...this.curves.map(e=>e.values.length))}get width(){return Math.max(40,this.canvas.parentElement.clientWidth-M.left-
M.right)}placeAt(e){let t=e.clientX-this.canvas.getBoundingClientRect().left-M.left;return Math.max(0,Math.min(this.n-1,
Math.floor(t/this.width*this.n)))}drawAxes(e,t){e.font="11px system-ui, sans-serif",e.strokeStyle=g("--grid"),e.fillStyle=
g("--faint"),e.textAlign="right",e.textBaseline="middle";for(let i=0,o=ie(this.top,4);i<=this.top;i+=o){let a=Math.round(
M.top+(1-i/this.top)*t)+.5;z(e,M.left,a,M.left+this.width,a),e.fillText(p(i),M.left-6,a)}e.textBaseline="top",e.textAlign=
"center";let s=Math.max(1,I(this.n,this.width/90)),n=this.options.ticks??Array.from({length:Math.ceil(this.n/s)},(i,o)=>({
at:o*s+.5,text:this.options.x(o*s)}));for(let{at:i,text:o}of n)e.fillText(o,M.left+Math.max(10,i/this.n*this.width),M.top+
t+6)}draw(){if(!this.element.isConnected)return;let e=E(this.canvas,this.options.height),t=this.options.height-M.top-M.bottom;
this.top=1;for(let s of this.curves)for(let n of s.values)n>this.top&&(this.top=n);this.top*=1.05,this.drawAxes(e,t);for(let s of this.
curves)this.drawCurve(e,s,t)}drawCurve(e,t,s){let n=Math.min(this.n,Math.ceil(this.width)),i=M.top+s,o=!1;e.beginPath();
for(let a=0;a<n;a++){let u=Math.floor(a*this.n/n),h=Math.floor((a+1)*this.n/n),d=NaN;for(let x=u;x<Math.max(u+1,h);x++)t.
values[x]<=d||(d=t.values[x]);let m=M.left+a/n*this.width,f=M.left+(a+1)/n*this.width;if(Number.isNaN(d)||d===void 0){o=
!1;continue}let b=M.top+(1-d/this.top)*s;t.filled?e.rect(m,b,Math.max(.6,f-m-(f-m>4?1:0)),i-b):o?e.lineTo(m,b):e.moveTo(
m,b),t.filled||e.lineTo(f,b),o=!0}e.lineWidth=1.6,t.filled?e.fillStyle=t.colour:e.strokeStyle=t.colour,t.filled?e.fill():
e.stroke()}point(e){let t=this.placeAt(e),s=this.canvas.getBoundingClientRect(),n=e.clientX-s.left,i=this.curves.map(a=>({
c:a,v:a.values[t]})).filter(({v:a})=>a>=0).sort((a,u)=>this.curves.length>8?u.v-a.v:0).slice(0,10);this.tip.hidden=i.length===
0,y(this.tip,c("b",{},this.options.x(t)),i.map(({c:a,v:u})=>{let h=c("i.swatch");return h.style.background=a.colour,c("d\
iv.row",{},c("span",{},h,a.name),c("span",{},p(u)))}));let o=n>s.width/2;this.tip.style.left=o?"":`${n+14}px`,this.tip.style.
right=o?`${s.width-n+14}px`:"",this.tip.style.top="10px"}};var G=13,xt=400,he=class{constructor(e){this.state=e;let t=c("div.plot",{},this.canvas,this.tip);this.element=c("div",{},
t);let s=this.column("blocks");for(let n=0,i=0;n<s.length;i+=s[n++])this.first.push(i);this.canvas.addEventListener("poi\
ntermove",n=>this.point(n)),this.canvas.addEventListener("pointerleave",()=>{this.tip.hidden=!0}),new ResizeObserver(this.
redraw).observe(t)}element;canvas=c("canvas",{role:"img","data-plot":"segments"});tip=c("div.tip",{hidden:!0});pieces=[];rowBytes=1;nRows=0;first=[];redraw=F(
()=>this.draw());column(e){return this.state.source.column(`map.${e}`)}layOut(){let e=this.column("size"),t=[...e].sort(
(o,a)=>a-o);this.rowBytes=Math.max(1,t[Math.min(2,t.length-1)]??1,(t[0]??1)/40),this.pieces=[];let s=this.rowBytes/250,n=0,
i=0;for(let o=0;o<e.length&&i<xt;o++){n>0&&n+e[o]>this.rowBytes&&(n=0,i++);for(let a=0;a<e[o];a+=this.rowBytes){let u=Math.
min(e[o],a+this.rowBytes);this.pieces.push({segment:o,from:a,to:u,x:n,y:i*G}),n+=u-a+s,u<e[o]&&(n=0,i++)}}this.nRows=i+1}draw(){
if(!this.element.isConnected)return;this.layOut();let e=E(this.canvas,this.nRows*G+2),t=this.canvas.parentElement.clientWidth,
s=t/this.rowBytes,n=this.column("start"),i=this.column("bytes"),o=this.column("category"),a=this.column("blocks");for(let u of this.
pieces){e.fillStyle=g("--gap"),e.fillRect(u.x*s,u.y,Math.max(1,(u.to-u.from)*s),G-2);for(let h=this.first[u.segment];h<this.
first[u.segment]+a[u.segment];h++){let d=Math.max(n[h],u.from),m=Math.min(n[h]+i[h],u.to);m<=d||(e.fillStyle=S(this.state.
source.text(o[h])),e.fillRect((u.x+d-u.from)*s,u.y,Math.max(.7,(m-d)*s-.4),G-2))}}this.canvas.setAttribute("aria-label",
`${l("map")}: ${this.column("size").length}. ${l("mapHint")}`)}blockAt(e,t){let s=this.column("start"),n=this.column("by\
tes");for(let i=this.first[e.segment];i<this.first[e.segment]+this.column("blocks")[e.segment];i++)if(t>=s[i]&&t<s[i]+n[i])
return i;return-1}point(e){let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top,i=s/t.width*this.
rowBytes,o=this.pieces.find(b=>n>=b.y&&n<b.y+G&&i>=b.x&&i<b.x+b.to-b.from);if(this.tip.hidden=!o,!o)return;let a=o.from+
i-o.x,u=this.blockAt(o,a),h=this.state.source,d=(b,x)=>c("div.row",{},c("span",{},b),c("span",{},x)),m=u>=0?h.frames(this.
column("stack")[u]):[];y(this.tip,c("b",{},u<0?l("gap"):h.text(this.column("tensor")[u])??l("block")),u<0?d(l("size"),p(
this.gapAt(o,a))):d(l("size"),p(this.column("bytes")[u])),u>=0&&d(l("category"),h.text(this.column("category")[u])??l("u\
nknown")),d(l("segment"),`${p(this.column("size")[o.segment])}, `+l(this.column("small")[o.segment]?"smallPool":"largePo\
ol")),d(l("address"),`0x${this.column("address")[o.segment].toString(16)}`),u>=0&&c("code",{},m.length?H(C(m)):l("noStac\
k")));let f=s>t.width/2;this.tip.style.left=f?"":`${s+14}px`,this.tip.style.right=f?`${t.width-s+14}px`:"",this.tip.style.
top=`${n+16}px`}gapAt(e,t){let s=this.column("start"),n=this.column("bytes"),i=0,o=this.column("size")[e.segment];for(let a=this.
first[e.segment];a<this.first[e.segment]+this.column("blocks")[e.segment];a++)if(s[a]+n[a]<=t)i=Math.max(i,s[a]+n[a]);else if(s[a]>
t){o=s[a];break}return o-i}};function N(r,e,...t){return c("section",{id:r},c("h2",{},e),t)}function St(r){return r===null?l("beforeSteps"):l("inStep",
r)}function Mt(r){return!r||!r.file?r?.function??l("unknown"):`${r.file}${r.line?`:${r.line}`:""}${r.function?` ${r.function}`:
""}`}function At(r,e){if(!e?.file)return null;let t=r.column("frames.file"),s=r.column("frames.line");for(let n=0;n<t.length;n++)
if(s[n]===e.line&&r.text(t[n])===e.file)return r.text(r.column("frames.source")[n]);return null}function He(r,e,t){let s=t??
At(r,e);return c("div.site",{},c("code",{},Mt(e)),s&&c("code.source",{},s))}function ze(r){let e=r.process,t=e.peak,s=r.
report.health,n=s.verdict??"",i=["ran_out","leaks","killed"].includes(n),o=["grew","nearly_ran_out"].includes(n),a=s.text??
"",u=(d,m,f,b,x)=>c("div.figure",{},c("span",{},d),c("b",{"data-value":b,"data-exact":x??void 0},m),c("small",{},f)),h=t?
te(r,t.device):null;return c("section.summary",{id:"overview"},c(i?"p.verdict.bad":o?"p.verdict.warn":"p.verdict",{role:"\
status"},a),s.next&&c("p",{},l("next")," ",c("code",{},s.next)),c("div.figures",{},t&&u(l("peakFigure"),p(t.allocated),`${t.
device}, ${St(t.step)}, ${l("at",L(t.time_ns))}`,"peak",t.allocated),t&&u(l("reservedFigure"),p(t.reserved),t.reserved?`${B(
t.allocated,t.reserved)} ${l("allocated")}`:l("unknown"),"reserved"),h!==null&&u(l("limitFigure"),p(h),t?B(t.allocated,h):
"","limit"),u(l("stepsFigure"),w(e.steps.count),e.steps.mean_ns?l("mean",R(e.steps.mean_ns)):"","steps"),u(l("eventsFigu\
re"),w(e.events),R(e.end_ns-e.start_ns),"events")),Lt(e))}function Lt(r){let e=r.forecast;return!e||r.oom_count>0||e.seconds_to_oom===
null&&e.steps_to_oom===null?null:c("p.verdict.warn",{},e.steps_to_oom!==null?l("inSteps",w(e.steps_to_oom)):l("inSeconds",
R(e.seconds_to_oom*1e9))," ",e.advice.join(" "))}function Et(r){return r.fixes.length===0?null:[c("h3",{},l("fixes")),k(
[l("what"),l("saves"),l("proof")],r.fixes.map(e=>[c("div",{},e.text,e.conf&&c("code.source",{},e.conf)),e.saves_bytes===
null?"-":p(e.saves_bytes),c(e.proof==="estimate"?"span.badge":"span.badge.good",{},l(`proof_${e.proof}`))]),[1])]}function _t(r){
let e=r.evidence.replays;return e?.length?[c("h3",{},l("settings")),k([l("conf"),l("result"),l("needs")],e.map(t=>[c("co\
de",{},t.conf||l("defaults")),t.runs_out_before?l("sooner"):t.runs_out?l("runsOut"):c("span.badge.good",{},l("fits")),p(
t.needs)]),[2])]:null}function Ne(r){let e=r.whatif;if(!e||e.settings.length<2)return null;let[t,...s]=e.settings,n=Math.
max(...e.settings.map(o=>o.peak_reserved),1),i=(o,a)=>[a,o.oom?l("runsOut"):o.conf===e.best&&o!==t?c("span.badge.good",{},
l("best")):l("fits"),c("span",{"data-exact":o.peak_reserved},p(o.peak_reserved)),p(o.wasted),w(o.retries),T(o.peak_reserved/
n,"var(--accent)")];return N("settings",l("settings"),c("p.faint",{},l("whatifHint",e.device)),k([l("conf"),l("result"),
l("needs"),l("wasted"),l("retries"),""],[i(t,[c("code",{},t.conf||l("defaults")),` (${l("asRecorded")})`]),...s.map(o=>i(
o,c("code",{},o.conf||l("defaults"))))],[2,3,4]))}function Ot(r){let e=[["allocated","allocated"],["reserved","reserved"],
["limitFigure","limit"],["gap","largest_free"],["otherProcesses","others"]],t=Object.entries(r.evidence.categories??{}).
sort((n,i)=>i[1]-n[1]),s=t.reduce((n,[,i])=>n+i,0);return c("div.halves",{},k([l("evidence"),l("size")],[[l("request"),p(
r.request_bytes)],...e.filter(([,n])=>typeof r.evidence[n]=="number").map(([n,i])=>[l(n),p(r.evidence[i])])],[1]),t.length>
0&&k([l("category"),l("size"),""],t.map(([n,i])=>[c("span",{},P(S(n)),n),p(i),T(i/s,S(n))]),[1]))}function De(r){let e=r.
source,t=e.report.explain?.ooms??[];return t.length===0?null:N("ooms",l("ooms"),t.map(s=>c("article",{},c("p.verdict.bad",
{},s.text??l(`cause_${s.cause}`)),c("p",{},l("oomLine",p(s.request_bytes),s.step??"-",p(s.evidence.allocated),p(s.evidence.
reserved))," ",c("button",{type:"button",click:()=>ke(r,s.time_ns-e.offset)},l("at",L(s.time_ns)))),He(e,s.site,s.site?.
source),[s.module,s.stage].some(Boolean)&&c("p.faint",{},[s.module,s.stage].filter(Boolean).join(" \xB7 ")),Et(s),Ot(s),
_t(s))))}function ke(r,e){let t=r.source.end/40;r.change({from:e-t,to:e+t,cursor:e}),document.getElementById("timeline").
scrollIntoView({block:"start"})}function $t(r,e){let t=e.bytes_per_step!==null?l("perStep",p(e.bytes_per_step)):e.bytes_per_second!==
null?`${p(e.bytes_per_second)}/s`:"-",s=(n,i)=>i?c("div.row",{},c("span",{},l(n)),c("span",{},i)):null;return c("article\
.leak",{},He(r,e,e.source??null),c("div.pairs",{},s("grows",c("b",{},t)),s("size",ne(e.growth_bytes)),s("step",e.first_step!==
null?l("since",e.first_step):null),s("category",e.category),s("module",e.module),s("keptBy",e.kept_by),s("confidence",e.
confidence!==null?B(e.confidence,1):null)),e.evidence&&c("p.faint",{},e.evidence))}function qe(r){let e=r.process;return N(
"leaks",l("leaks"),e.leaks.length===0&&c("p",{},e.leak_text??l("noLeak")),e.leaks.map(t=>$t(r,t)))}function We(r){let{map:e}=r.
source.drawn;if(!e)return null;let t=r.source.process.fragmentation.find(s=>s.device===e.device);return N("map",l("map"),
t&&c("p",{},l("mapLine",p(t.reserved),t.device,p(t.allocated),p(t.largest_free))," ",c("button",{type:"button",click:()=>ke(
r,e.time_ns)},l("at",L(e.time_ns+r.source.offset)))),c("p.faint",{},l("mapHint")),new he(r).element)}function Ie(r){let e=r.
source,t=e.drawn.steps.shown;if(t===0)return null;let s=e.column("steps.peak"),n=e.column("steps.end_bytes"),i=e.column(
"steps.step"),o=e.column("steps.start"),a=e.column("steps.end"),u=e.column("steps.bytes"),h=f=>{let b=(a[f]-o[f])*.1;r.change(
{from:o[f]-b,to:a[f]+b}),document.getElementById("timeline").scrollIntoView({block:"start"})},d=new V([{name:l("stepPeak"),
colour:"#86b0d2",values:s,filled:!0},{name:l("stepEnd"),colour:"#d6604d",values:n}],{height:190,label:l("steps"),x:f=>`${l(
"step")} ${i[Math.min(f,t-1)]}`,click:h}),m=Array.from({length:t},(f,b)=>b).sort((f,b)=>s[b]-s[f]||f-b).slice(0,12);return N(
"steps",l("steps"),d.element,c("h3",{},l("largestSteps")),k([l("step"),l("stepPeak"),l("stepEnd"),l("stepBytes"),l("step\
Allocations"),l("stepTime")],m.map(f=>[c("button.link",{type:"button",click:()=>h(f)},String(i[f])),p(s[f]),p(n[f]),p(u[f]),
w(e.column("steps.allocations")[f]),R(a[f]-o[f])]),[1,2,3,4,5]))}function Ke(r){let e=r.drawn.processes,t=r.report.ranks;
if(e.length<2)return null;let s=Math.max(...e.map(h=>h.peak??0),1),n=h=>h.rank!==null?l("rank",h.rank):l("pid",h.pid??"-"),
i=e.map((h,d)=>({p:h,i:d})).filter(({p:h})=>h.has_curve).map(({p:h,i:d})=>({name:n(h),colour:_[d%_.length],values:r.column(
`process.${d}`).map(m=>m>0?m-1:NaN)})),o=Math.max(...e.map(h=>h.end_ns)),a=i[0]?.values.length??1,u=I(o,10);return N("ra\
nks",l("ranks"),t?.says?.map(h=>c("p",{},h)),k([l("process"),l("rankHost"),l("rankPeak"),"",l("step"),l("rankEnd")],e.slice(
0,256).map(h=>[n(h),h.host??"-",c("span",{"data-exact":h.peak??void 0},p(h.peak)),T((h.peak??0)/s,"var(--accent)"),h.peak_step===
null?"-":String(h.peak_step),L(h.end_ns)]),[2,4,5]),e.length>256&&c("p.faint",{},l("shown",256,e.length)),i.length>0&&[c(
"h3",{},l("rankCurves")),new V(i,{height:190,label:l("rankCurves"),x:h=>A(h/a*o,o/100,o),ticks:Array.from({length:Math.floor(
o/u)+1},(h,d)=>({at:d*u/o*a,text:A(d*u,u,o)}))}).element])}function je(r){let e=r.process.accounting.filter(t=>t.moment===
"peak");return e.length===0?null:N("device",l("device"),e.map(t=>{let s=[...t.segments.map(n=>[n.owner,n.bytes]),[l("con\
text"),t.context],[l("otherProcesses"),t.others],[l("unexplained"),t.unexplained],[l("free"),t.total!==null&&t.used!==null?
t.total-t.used:null]];return[c("h3",{},`${t.device} ${l("at",L(t.time_ns))}`),k([l("owner"),l("size"),l("share"),""],s.filter(
([,n])=>n).map(([n,i])=>[c("span",{},P(S(n)),n),p(i),B(i,t.total??0),T(i/(t.total??i),S(n))]),[1,2])]}))}function Ue(r){
let e=r.drawn,t=r.process,s=[...t.quality.doubts,...r.report.not_recorded],n=h=>L(h+r.offset),{all:i,shown:o,window_start_ns:a,
window_end_ns:u}=e.blocks;return o<i?s.push(a!==null&&u!==null?l("leftBlocks",w(i),w(o),n(a),n(u)):l("leftBlocksOnly",w(
i),w(o))):s.push(l("leftNothing",w(i))),e.timeline.known_ns>0&&s.push(l("givenUp",n(e.timeline.known_ns))),s.push(l("lef\
tBins",w(e.timeline.bins),R(r.end/e.timeline.bins))),e.peak&&e.peak.rows_shown<e.peak.rows&&s.push(l("leftPeak",w(e.peak.
rows),w(e.peak.rows_shown),p(e.peak.bytes_shown),p(e.peak.bytes))),e.steps.shown<e.steps.all&&s.push(l("leftSteps",w(e.steps.
all),w(e.steps.shown))),e.map&&e.map.segments_shown<e.map.segments&&s.push(l("leftMap",w(e.map.segments),w(e.map.segments_shown))),
e.processes.length>1&&s.push(l("leftRanks",xe(t))),N("quality",l("quality"),c("ul",{},s.map(h=>c("li",{},h))),c("p.faint",
{},l("full",""),c("code",{},`tidemark query ${Fe(r.report.run,1)} \u2026`)))}function xe(r){return r.rank!==null?l("rank",
r.rank):r.pid!==null?l("pid",r.pid):l("process")}function Ye(r){let e=r.source.process;return e.marks.length===0?null:N(
"marks",l("marks"),k([l("time"),l("step"),l("name"),""],e.marks.slice(0,100).map(t=>[c("button.link",{type:"button",click:()=>ke(
r,t.time_ns-r.source.offset)},L(t.time_ns)),t.step===null?"-":String(t.step),t.name??"-",t.text]),[1]),e.mark_count>e.marks.
length&&c("p.faint",{},l("shown",e.marks.length,w(e.mark_count))))}var Me=document.getElementById("page");function Se(r){try{return localStorage.getItem(`tidemark.${r}`)}catch{return null}}
function Ve(r,e){try{localStorage.setItem(`tidemark.${r}`,e)}catch{}}function Xe(r){r==="light"||r==="dark"?document.documentElement.
dataset.theme=r:delete document.documentElement.dataset.theme}function Pt(r){let e=r.source.report,t=r.source.process,s=c(
"input",{type:"search",placeholder:l("search"),"aria-label":l("search"),value:r.view.query}),n=0;s.addEventListener("inp\
ut",()=>{clearTimeout(n),n=window.setTimeout(()=>r.change({query:s.value.trim()}),120)});let i=c("select",{"aria-label":l(
"theme"),change:a=>{let u=a.target.value;Ve("theme",u),Xe(u),r.change({})}},["auto","light","dark"].map(a=>c("option",{value:a,
selected:(Se("theme")??"auto")===a},l(`theme${a[0].toUpperCase()}${a.slice(1)}`)))),o=c("button",{type:"button",click:()=>{
let a=ee()==="en"?"zh":"en";Ve("language",a),fe(a),Le(r.source)}},l("language"));return c("header",{},c("a.skip",{href:"\
#overview"},l("skip")),c("div.name",{},c("h1",{},e.run.replace(/\/+$/,"").split("/").pop()??e.run),c("p.faint",{},[xe(t),
t.host,t.command,l("started",e.started_utc)].filter(Boolean).join(" \xB7 "))),c("div.tools",{},s,i,o))}function Ft(r){return c(
"nav",{"aria-label":l("overview")},r.map(e=>{let t=e.querySelector("h2")?.textContent??l("overview");return c("a",{href:`\
#${e.id}`,click:s=>{s.preventDefault(),e.scrollIntoView({block:"start"}),e.setAttribute("tabindex","-1"),e.focus({preventScroll:!0})}},
t)}))}function Ge(r,e){for(let t of[r.view.cursor,r.view.other])t!==null&&t>=0&&e.wantMoment(t)}var Ae=new URLSearchParams(
location.search).has("pid")?location.search.slice(1):"",X=c("p.live",{role:"status",hidden:!0}),Bt=null;function Rt(r){return(Bt??=
new se(Ae)).element}function J(r,e){X.hidden=r===null,X.textContent=r??"",X.dataset.live=e?"1":"0"}async function Ct(){for(;document.
activeElement?.matches("input, textarea, select");)await new Promise(r=>addEventListener("focusout",()=>setTimeout(r),{once:!0}))}
async function Ht(){let r=-1,e=!1,t=!1,s=async()=>{if(e){t=!0;return}e=!0;try{do{t=!1;let i=await W.load(Ae);await Ct();
let o=window.scrollY;Le(i),window.scrollTo(0,o)}while(t)}finally{e=!1}};await s();let n=new EventSource("api/events");n.
addEventListener("state",i=>{let o=JSON.parse(i.data);J(o.live?l("live"):null,o.live),r>=0&&o.state!==r&&s().catch(Je),r=
o.state}),n.addEventListener("error",()=>J(l("serverGone"),!1))}async function zt(){let r=new ce;y(Me,c("header",{},c("h\
1",{},"tidemark")),X,r.element),await r.refresh(),document.documentElement.dataset.ready="1";let e=new EventSource("api/\
events");e.addEventListener("state",()=>J(l("live"),!0)),e.addEventListener("node",()=>void r.refresh().catch(()=>J(l("s\
erverGone"),!1))),e.addEventListener("error",()=>J(l("serverGone"),!1))}function Le(r){let e=new ue(r),t=r.process;r instanceof
W&&(r.onMore=()=>e.change({cursor:e.view.cursor}),e.listen(()=>Ge(e,r)),Ge(e,r));let n=[ze(r),r.devices.length>0&&new ae(
e).element,De(e),r.drawn.peak&&new le(e).element,(t.leaks.length>0||t.steps.count>0)&&qe(r),We(e),Ne(r),Ie(e),Ke(r),je(r),
Ye(e),Ue(r),r instanceof W&&Rt(r)].filter(i=>i instanceof HTMLElement);y(Me,Pt(e),X,Ft(n),c("main",{},n),c("footer",{},l(
r instanceof W?"servedBy":"madeBy",r.report.tidemark))),window.onhashchange=()=>{e.read(),e.change(e.view)},document.documentElement.
dataset.ready="1"}function Je(r){let e=r instanceof Error?r.message:String(r);y(Me,c("p.verdict.bad",{role:"alert"},l("f\
ailed",typeof DecompressionStream>"u"?l("old"):e)))}async function Nt(){let r=Se("language")??navigator.language;fe(r.startsWith(
"zh")?"zh":"en"),Xe(Se("theme")??"auto");let e=document.body.dataset.served;if(e)return e==="node"&&!Ae?zt():Ht();let t=document.
getElementById("data"),{json:s,rest:n}=await Ee(t.textContent.trim());t.remove(),Le(new q(s,n))}Nt().catch(Je);})();
