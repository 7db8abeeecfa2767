"use strict";(()=>{var j=class{constructor(e,t){this.places=e;this.bytes=t}made=new Map;get(e){let t=this.made.get(e);if(!t){let s=this.places[e];
t=s?Ne(this.bytes,s):new Float64Array(0),this.made.set(e,t)}return t}};function Ne(r,[e,,t,s]){let n=new Float64Array(t),
i=e,o=0;for(let a=0;a<t;a++){let l=0,u=1,m;do m=r[i++],l+=(m&127)*u,u*=128;while(m>127);s===1&&(o+=l%2===0?l/2:-(l+1)/2,
l=o),n[a]=l}return n}function He(r){let e=atob(r),t=new Uint8Array(e.length);for(let s=0;s<t.length;s++)t[s]=e.charCodeAt(
s);return t}function De(r){let e=new DataView(r.buffer,r.byteOffset).getUint32(0,!0);return{json:JSON.parse(new TextDecoder().
decode(r.subarray(4,4+e))),rest:r.subarray(4+e)}}async function be(r){let e=new Blob([He(r)]).stream(),t=new Response(e.
pipeThrough(new DecompressionStream("deflate")));return De(new Uint8Array(await t.arrayBuffer()))}function re(r,e){e==null||e===!1||(Array.isArray(e)?e.forEach(t=>re(r,t)):r.append(e instanceof Node?e:String(e)))}function h(r,e={},...t){
let[s,...n]=r.split("."),i=document.createElement(s);n.length&&(i.className=n.join(" "));for(let[o,a]of Object.entries(e))
typeof a=="function"?i.addEventListener(o,a):a===!0?i.setAttribute(o,""):a!==void 0&&a!==!1&&i.setAttribute(o,String(a));
return re(i,t),i}function k(r,...e){r.replaceChildren(),re(r,e)}function S(r,e,t=[]){let s=n=>t.includes(n)?{class:"n"}:
{};return h("div.scroll",{},h("table",{},h("thead",{},h("tr",{},r.map((n,i)=>h("th",{scope:"col",...s(i)},n)))),h("tbody",
{},e.map(n=>h("tr",{},n.map((i,o)=>h("td",s(o),i)))))))}function D(r,e){let t=h("i");return t.style.width=`${Math.max(0,
Math.min(1,r))*100}%`,t.style.background=e,h("span.bar",{"aria-hidden":"true"},t)}function F(r){let e=h("i.swatch",{"ari\
a-hidden":"true"});return e.style.background=r,e}function L(r,e){let t=window.devicePixelRatio||1,s=r.parentElement.clientWidth,
n=Math.max(1,Math.round(s*t)),i=Math.max(1,Math.round(e*t));(r.width!==n||r.height!==i)&&(r.width=n,r.height=i,r.style.width=
`${s}px`,r.style.height=`${e}px`);let o=r.getContext("2d");return o.setTransform(t,0,0,t,0,0),o.clearRect(0,0,s,e),o}function T(r){
let e=!1;return()=>{e||(e=!0,requestAnimationFrame(()=>{e=!1,r()}))}}function y(r){return getComputedStyle(document.documentElement).
getPropertyValue(r).trim()}var V=[["parameter","#3f9b5b"],["buffer","#8c6d46"],["optimizer_state","#dba520"],["gradient","#3f74c4"],["input","#27a5\
a0"],["activation","#d6604d"],["kv_cache","#4f8f8b"],["autograd_detail","#7fb2e5"],["temporary","#9970ab"],["embedding",
"#2a6459"],["attention","#4a3fc0"],["mlp","#f7a88f"],["normalization","#d9a3ee"],["lora","#c51b7d"],["conv","#7a2f6b"],[
"expert","#8a3a1c"],["router","#f0d37a"],["(cuBLAS workspace)","#b47b80"],["(cuBLASLt workspace)","#c9b08a"],["head","#7\
fc06a"],["model_load","#3f9b5b"],["data","#27a5a0"],["wrap","#7fb2e5"],["optimizer_setup","#7d5a1a"],["privacy_setup","#\
c51b7d"],["forward","#d6604d"],["backward","#3f74c4"],["privacy","#f7a88f"],["optimizer","#dba520"],["eval","#9970ab"],[
"torch","#ee7a32"],["jax","#3f74c4"],["cupy","#9970ab"],["cublas","#27a5a0"],["cudnn","#7fb2e5"],["nccl","#3f9b5b"],["us\
er","#c51b7d"],["other","#9aa0a6"],["unknown","#c4c7cc"]],$=["#4393c3","#e08214","#33a05c","#d6604d","#9970ab","#878787",
"#35978f","#c51b7d","#b8860b","#6a51a3"];var We=new Map(V),Ie=new Map(V.map(([r],e)=>[r,e]));function x(r){let e=We.get(r??"unknown");if(e)return e;let t=0;for(let s=0;s<
r.length;s++)t=Math.imul(31,t)+r.charCodeAt(s)>>>0;return $[t%$.length]}function ve(r){return Ie.get(r??"unknown")??V.length}var Ke={language:"\u4E2D\u6587",theme:"Theme",themeAuto:"System",themeLight:"Light",themeDark:"Dark",search:"Find a file\
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
Runs out of memory in about {0} steps.",compare:"Compare with another moment",comparedWith:"compared with {0}",stopComparing:"\
Stop",change:"Change",next:"Next:",madeBy:"Made by tidemark {0}. This file needs no network and sends nothing.",failed:"\
This page cannot be shown: {0}",old:"the browser is too old; any browser of 2023 or later will do"},qe={language:"Englis\
h",theme:"\u4E3B\u9898",themeAuto:"\u8DDF\u968F\u7CFB\u7EDF",themeLight:"\u6D45\u8272",themeDark:"\u6DF1\u8272",search:"\
\u67E5\u627E\u6587\u4EF6\u3001\u51FD\u6570\u3001\u6A21\u5757\u6216\u5F20\u91CF",skip:"\u8DF3\u5230\u6B63\u6587",overview:"\
\u6982\u89C8",timeline:"\u663E\u5B58\u968F\u65F6\u95F4\u53D8\u5316",peak:"\u5DF2\u5206\u914D\u7684\u5185\u5BB9",ooms:"\u663E\u5B58\
\u4E0D\u8DB3 (OOM)",leaks:"\u6CC4\u6F0F",map:"\u6BB5",steps:"\u6B65",ranks:"\u5404 rank",device:"\u8BBE\u5907",settings:"\
\u5206\u914D\u5668\u8BBE\u7F6E",marks:"\u6807\u8BB0",quality:"\u672A\u5305\u542B\u7684\u5185\u5BB9",peakFigure:"\u5DF2\u5206\u914D\u5CF0\u503C",
reservedFigure:"\u5F53\u65F6\u5DF2\u9884\u7559",limitFigure:"\u4E0A\u9650",stepsFigure:"\u6B65\u6570",eventsFigure:"\u4E8B\u4EF6",
inStep:"\u7B2C {0} \u6B65",beforeSteps:"\u7B2C\u4E00\u6B65\u4E4B\u524D",at:"{0} \u65F6",perStep:"\u6BCF\u6B65 {0}",process:"\
\u8FDB\u7A0B",rank:"rank {0}",pid:"PID {0}",started:"\u5F00\u59CB\u4E8E {0} UTC",by:"\u7740\u8272\u4F9D\u636E",category:"\
\u7C7B\u522B",module:"\u6A21\u5757",component:"\u7EC4\u4EF6",stage:"\u9636\u6BB5",blocks:"\u5355\u4E2A\u5757",line:"\u4EE3\u7801\u884C",
tensor:"\u5F20\u91CF",deviceLabel:"\u8BBE\u5907",all:"\u6574\u4E2A\u8FD0\u884C",toPeak:"\u5CF0\u503C",zoomIn:"\u653E\u5927",
zoomOut:"\u7F29\u5C0F",left:"\u5411\u524D",right:"\u5411\u540E",reserved:"\u5DF2\u9884\u7559",used:"\u8BBE\u5907\u5360\u7528",
limit:"\u4E0A\u9650",least:"\u50CF\u7D20\u5185\u6700\u5C0F\u503C",allocated:"\u5DF2\u5206\u914D",others:"\u5176\u4ED6 {0} \u9879",
unknown:"\u672A\u77E5",smaller:"\u8F83\u5C0F\u7684\u5757",hint:"\u6EDA\u8F6E\u6216 + \u2212 \u7F29\u653E\uFF0C\u62D6\u52A8\u6216 \u2190 \u2192 \u79FB\u52A8\uFF0C\u53CC\u51FB\u6216 0 \u663E\u793A\u5168\u90E8\uFF0C\u5355\u51FB\u67E5\u770B\u67D0\u4E00\u65F6\u523B\u3002",
exact:"\u7CBE\u786E\uFF1A\u6B64\u7A97\u53E3\u5185\u7684\u6BCF\u4E2A\u5757\u90FD\u5728\u6587\u4EF6\u4E2D",binned:"\u6BCF\u5217\u662F {0}\
 \u5185\u7684\u6700\u9AD8\u65F6\u523B",moment:"{0} \u65F6",peakMoment:"\u5CF0\u503C\u65F6\u523B {0}",backToPeak:"\u56DE\u5230\u5CF0\u503C",
composition:"\u6C47\u603B\u4F9D\u636E",size:"\u5927\u5C0F",share:"\u5360\u6BD4",blocksHead:"\u5757\u6570",name:"\u540D\u79F0",
place:"\u4EE3\u7801\u884C",icicle:"\u8C03\u7528\u6811",icicleStack:"\u6309 Python \u8C03\u7528\u6808",icicleModule:"\u6309\u6A21\u5757",
allFrames:"\u5168\u90E8\u5E27",ownFrames:"\u4EC5\u81EA\u5DF1\u7684\u4EE3\u7801",icicleHint:"\u5BBD\u5EA6\u8868\u793A\u5B57\u8282\u6570\u3002\u5355\u51FB\u65B9\u5757\u653E\u5927\uFF0CEsc \u8FD4\u56DE\u3002",
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
inSteps:"\u9884\u8BA1\u7EA6 {0} \u6B65\u540E\u663E\u5B58\u4E0D\u8DB3\u3002",compare:"\u4E0E\u53E6\u4E00\u65F6\u523B\u6BD4\u8F83",
comparedWith:"\u4E0E{0}\u6BD4\u8F83",stopComparing:"\u505C\u6B62\u6BD4\u8F83",change:"\u53D8\u5316",next:"\u4E0B\u4E00\u6B65\uFF1A",
madeBy:"\u7531 tidemark {0} \u751F\u6210\u3002\u6B64\u6587\u4EF6\u4E0D\u9700\u8981\u7F51\u7EDC\uFF0C\u4E5F\u4E0D\u53D1\u9001\u4EFB\u4F55\u5185\u5BB9\u3002",
failed:"\u65E0\u6CD5\u663E\u793A\u6B64\u9875\u9762\uFF1A{0}",old:"\u6D4F\u89C8\u5668\u8FC7\u65E7\uFF1B\u8BF7\u4F7F\u7528 2023 \u5E74\u6216\u66F4\u65B0\u7684\u6D4F\u89C8\u5668"},
oe="en";function ae(r){oe=r,document.documentElement.lang=r==="zh"?"zh-CN":"en"}function Y(){return oe}function c(r,...e){
return(oe==="zh"?qe:Ke)[r].replace(/\{(\d)\}/g,(s,n)=>String(e[Number(n)]??"-"))}var z=["category","module","component","stage"],X=class{constructor(e,t){this.page=e;this.drawn=e.drawn,this.columns=new j(
e.drawn.columns,t),this.blocks=this.readBlocks(),this.peakRows=this.readPeak();let s=this.column("stacks.n");this.frameStarts=
new Float64Array(s.length+1);for(let n=0;n<s.length;n++)this.frameStarts[n+1]=this.frameStarts[n]+s[n]}drawn;blocks;peakRows;columns;levels=new Map;frameStarts;get report(){
return Y()==="zh"?this.page.report_zh:this.page.report}get process(){return this.report.processes[this.report.chosen]}get devices(){
return this.drawn.timeline.devices}get start(){return 0}get end(){return Math.max(1,this.drawn.timeline.end_ns)}get offset(){
return this.drawn.timeline.offset_ns}column(e){return this.columns.get(e)}text(e){return e>0?this.drawn.strings[e-1]:null}keysOf(e){
return{category:this.column(`${e}.category`),module:this.column(`${e}.module`),component:this.column(`${e}.component`),stage:this.
column(`${e}.stage`)}}readBlocks(){let e=this.column("blocks.alloc"),t=this.column("blocks.life"),s=new Float64Array(e.length);
for(let n=0;n<s.length;n++)s[n]=t[n]>0?e[n]+t[n]-1:1/0;return{n:e.length,alloc:e,free:s,size:this.column("blocks.size"),
address:this.column("blocks.address"),step:this.column("blocks.step"),stack:this.column("blocks.stack"),tensor:this.column(
"blocks.tensor"),device:this.column("blocks.device"),keys:this.keysOf("blocks")}}readPeak(){let e=this.column("peak.byte\
s");return{n:e.length,bytes:e,blocks:this.column("peak.blocks"),stack:this.column("peak.stack"),tensor:this.column("peak\
.tensor"),keys:this.keysOf("peak")}}frames(e){if(!(e>0))return[];let t=[],s=this.column("stacks.frames");for(let n=this.
frameStarts[e-1];n<this.frameStarts[e];n++)t.push(this.frame(s[n]-1));return t}frame(e){return{file:this.text(this.column(
"frames.file")[e]),function:this.text(this.column("frames.function")[e]),line:this.column("frames.line")[e],kind:this.column(
"frames.kind")[e],source:this.text(this.column("frames.source")[e])}}hasAll(e,t){let{window_start_ns:s,window_end_ns:n}=this.
drawn.blocks;return s!==null&&n!==null&&this.drawn.timeline.known_ns<=e&&s<=Math.max(0,e)&&n>=Math.min(t,this.end)}levelsOf(e){
let t=this.levels.get(e);if(!t){for(t=[this.finest(e)];t[t.length-1].n>1;)t.push(Ue(t[t.length-1]));this.levels.set(e,t)}
return t}finest(e){let t=this.drawn.timeline.bins;return{n:t,width:this.end/t,best:Int32Array.from({length:t},(s,n)=>n),
max:this.column(`bins.${e}.max`),min:this.column(`bins.${e}.min`),reserved:this.column(`bins.${e}.reserved`),used:this.column(
`bins.${e}.used`)}}bins(e,t,s,n,i){let o=this.levelsOf(e),a=(s-t)/Math.max(1,n),l=o[0];for(let u of o)u.width<=a*1.01&&(l=
u);return l===o[0]&&l.width>a&&this.hasAll(t,s)?this.exactBins(e,t,s,n,i):this.cut(e,l,t,s,i)}layersOf(e,t){return this.
drawn.timeline.layers.filter(n=>n.device===e&&n.by===t).map(n=>({key:{key:n.key,others:n.others},column:this.column(n.column)})).
sort((n,i)=>ye(n.key,t)-ye(i.key,t))}cut(e,t,s,n,i){let o=O(Math.floor(s/t.width),0,t.n-1),a=O(Math.ceil(n/t.width),o+1,
t.n),l=this.layersOf(e,i),u=this.column(`bins.${e}.at`),m=a-o,d=p=>{let v=new Float64Array(m);for(let w=0;w<m;w++)v[w]=p[t.
best[o+w]];return v};return{start:o*t.width,width:t.width,n:m,exact:!1,max:t.max.subarray(o,a),min:t.min.subarray(o,a),at:d(
u),reserved:t.reserved.subarray(o,a),used:t.used.subarray(o,a),keys:l.map(p=>p.key),layers:l.map(p=>d(p.column))}}exactBins(e,t,s,n,i){
let o=this.layersOf(e,i),a=o.map(v=>v.key.key),l=this.cut(e,this.levelsOf(e)[0],t,s,i),u=Math.max(1,Math.round(n)),m=(s-
t)/u,d=new le(this,e,i,a,o.findIndex(v=>v.key.others>0)),p={start:t,width:m,n:u,exact:!0,max:new Float64Array(u),min:new Float64Array(
u),at:new Float64Array(u),reserved:new Float64Array(u),used:new Float64Array(u),keys:o.map(v=>v.key),layers:o.map(()=>new Float64Array(
u))};d.fill(p);for(let v=0;v<u;v++){let w=O(Math.floor((t+v*m-l.start)/l.width),0,l.n-1);p.reserved[v]=l.reserved[w],p.used[v]=
l.used[w]}return p}};function Ue(r){let e=Math.ceil(r.n/2),t={n:e,width:r.width*2,max:new Float64Array(e),min:new Float64Array(
e),best:new Int32Array(e),reserved:new Float64Array(e),used:new Float64Array(e)};for(let s=0;s<e;s++){let n=2*s,i=Math.min(
2*s+1,r.n-1),o=r.max[i]>r.max[n]?i:n;t.max[s]=r.max[o],t.best[s]=r.best[o],t.min[s]=Math.min(r.min[n],r.min[i]),t.reserved[s]=
Math.max(r.reserved[n],r.reserved[i]),t.used[s]=Math.max(r.used[n],r.used[i])}return t}function ye(r,e){return r.others>
0?2e3:e==="module"?0:ve(r.key)}var le=class{layer;changes=[];constructor(e,t,s,n,i){let o=e.blocks,a=o.keys[s],l=i<0?0:i,
u=new Map(n.map((m,d)=>[m,d]));this.layer=new Int16Array(o.n).fill(-1);for(let m=0;m<o.n;m++)o.device[m]===t&&(this.layer[m]=
u.get(e.text(a[m]))??l);this.source=e}source;gather(e,t,s){let n=this.source.blocks,i=0;for(let o=0;o<n.n&&n.alloc[o]<=t;o++)
this.layer[o]<0||n.free[o]<e||(n.alloc[o]<e?(s[this.layer[o]]+=n.size[o],i+=n.size[o]):this.changes.push({ns:n.alloc[o],
block:o,isFree:!1}),n.free[o]<=t&&this.changes.push({ns:n.free[o],block:o,isFree:!0}));return this.changes.sort((o,a)=>o.
ns-a.ns||Number(a.isFree)-Number(o.isFree)),i}fill(e){let t=this.source.blocks,s=new Float64Array(e.layers.length),n=e.start+
e.n*e.width,i=this.gather(e.start,n,s),o=0;for(let a=0;a<e.n;a++){let l=a+1===e.n?1/0:e.start+(a+1)*e.width;for(e.max[a]=
e.min[a]=i,e.at[a]=e.start+a*e.width,s.forEach((u,m)=>{e.layers[m][a]=u});o<this.changes.length&&this.changes[o].ns<l;o++){
let u=this.changes[o],m=u.isFree?-t.size[u.block]:t.size[u.block];if(i+=m,s[this.layer[u.block]]+=m,i<e.min[a]&&(e.min[a]=
i),!(i<=e.max[a])){e.max[a]=i,e.at[a]=u.ns;for(let d=0;d<s.length;d++)e.layers[d][a]=s[d]}}}}};function G(r,e){let t=r.report.
explain?.ooms.find(n=>n.device===e)?.evidence.limit;if(typeof t=="number")return t;let s=r.process;return s.ooms.find(n=>n.
device===e&&n.capacity)?.capacity??s.accounting.find(n=>n.device===e&&n.total)?.total??null}function O(r,e,t){return r<e?
e:r>t?t:r}var ge=["B","KiB","MiB","GiB","TiB","PiB"];function f(r){if(r==null)return"-";let e=0,t=Math.abs(r);for(;t>=1023.95&&e<ge.
length-1;)t/=1024,e++;let s=e===0?0:e>=3?2:1;return`${r<0?"-":""}${t.toFixed(s)} ${ge[e]}`}function Z(r){return r==null?
"-":r<1024?`${r} B`:`${f(r)} (${g(r)} B)`}function g(r){return r==null?"-":Math.round(r).toLocaleString("en-US")}function E(r,e){
if(!(e>0))return"-";let t=100*r/e;return t>0&&t<1?"<1 %":`${Math.round(t)} %`}function B(r){if(r==null)return"-";if(r<1e3)
return`${r.toFixed(0)} ns`;if(r<1e6)return`${(r/1e3).toFixed(2)} \xB5s`;if(r<1e9)return`${(r/1e6).toFixed(2)} ms`;if(r<12e10)
return`${(r/1e9).toFixed(2)} s`;let e=Math.round(r/1e9),t=Math.floor(e/60);return t<60?`${t} min ${e%60} s`:`${Math.floor(
t/60)} h ${t%60} min`}function A(r,e,t=r){let[s,n]=t>=1e9?["s",1e9]:t>=1e6?["ms",1e6]:t>=1e3?["\xB5s",1e3]:["ns",1],i=Math.
max(0,Math.min(9,Math.ceil(-Math.log10(Math.max(1,e)/n)-1e-9)));return`${(r/n).toFixed(i)} ${s}`}function _(r){return A(
r,r>=1e9?1e6:r>=1e6?1e4:10)}function W(r,e){let t=r/Math.max(1,e),s=10**Math.floor(Math.log10(t)),n=t/s;return s*(n<=1?1:
n<=2?2:n<=5?5:10)}function J(r,e){return 2**Math.max(0,Math.ceil(Math.log2(Math.max(1,r/Math.max(1,e)))))}function ke(r,e=2){
let t=r.split("/");return t.length<=e?r:t.slice(-e).join("/")}function P(r){return r.find(e=>e.kind===0)??r.find(e=>e.kind===1)??r[0]??null}function C(r){return r?r.file?`${r.file}${r.
line?`:${r.line}`:""}${r.function?` ${r.function}`:""}`:r.function??"?":"?"}function ce(r,e,t){let s=r.blocks,n=[];for(let o=0;o<
s.n&&s.alloc[o]<=t;o++)s.free[o]>t&&s.device[o]===e&&n.push(o);let i=o=>Float64Array.from(n,a=>o[a]);return{n:n.length,bytes:i(
s.size),blocks:new Float64Array(n.length).fill(1),stack:i(s.stack),tensor:i(s.tensor),keys:{category:i(s.keys.category),
module:i(s.keys.module),component:i(s.keys.component),stage:i(s.keys.stage)}}}function Q(r,e,t,s){let n=new Map,i=new Map,
o=a=>{let l=i.get(a);return l===void 0&&(l=a>0?C(P(r.frames(a))):null,i.set(a,l)),l};for(let a=0;a<e.n;a++){if(s&&!s(a))
continue;let l=t==="line"?o(e.stack[a]):r.text(t==="tensor"?e.tensor[a]:e.keys[t][a]),u=n.get(l);u||n.set(l,u={key:l,bytes:0,
blocks:0,stack:e.stack[a]}),u.bytes+=e.bytes[a],u.blocks+=e.blocks[a]}return[...n.values()].sort((a,l)=>l.bytes-a.bytes||
je(a.key,l.key))}function je(r,e){return r===null||e===null?+(r===null)-+(e===null):r<e?-1:r>e?1:0}var N=class{constructor(e,t){
this.source=e;this.query=t.toLowerCase()}texts=new Map;stacks=new Map;query;has(e){return e!==null&&e.toLowerCase().includes(
this.query)}text(e){let t=this.texts.get(e);return t===void 0&&this.texts.set(e,t=this.has(this.source.text(e))),t}stack(e){
let t=this.stacks.get(e);return t===void 0&&(t=this.source.frames(e).some(s=>this.has(s.file)||this.has(s.function)||this.
has(C(s))),this.stacks.set(e,t)),t}row(e,t){return this.text(e.tensor[t])||this.text(e.keys.module[t])||this.stack(e.stack[t])}};var I=20,Ve=40;function we(r,e,t,s){return{name:r,kind:e,bytes:0,matches:!1,parent:t,children:new Map,source:s}}function Ye(r,e,t,s){
let n=r;n.bytes+=t;for(let[i,o,a]of e){let l=n.children.get(i);l||n.children.set(i,l=we(i,o,n,a)),l.bytes+=t,l.matches||=
s,n=l}}function Xe(r,e,t,s,n){let i=we(c("total"),3,null,null),o=n?new N(r,n):null,a=new Map,l=u=>{let m=a.get(u);return m||
(m=r.frames(u).filter(d=>!s||d.kind===0).reverse().slice(0,Ve).map(d=>[C(d),d.kind,d.source]),m.length===0&&(m=[[c("noSt\
ack"),2,null]]),a.set(u,m)),m};for(let u=0;u<e.n;u++){let m=t?(r.text(e.keys.module[u])?.split(".")??[c("unknown")]).map(
d=>[d,4,null]):l(e.stack[u]);Ye(i,m,e.bytes[u],o!==null&&o.row(e,u))}return i}var ee=class{constructor(e){this.state=e;let t=h(
"div.plot",{},this.canvas,this.tip);this.element=h("div",{},this.tools,t,this.way),this.fillTools(),this.canvas.addEventListener(
"click",s=>this.open(this.boxAt(s))),this.canvas.addEventListener("pointermove",s=>this.point(s)),this.canvas.addEventListener(
"pointerleave",()=>{this.tip.hidden=!0}),this.canvas.addEventListener("keydown",s=>this.key(s)),new ResizeObserver(this.
redraw).observe(t)}element;canvas=h("canvas",{tabindex:0,role:"img","data-plot":"icicle"});tip=h("div.tip",{hidden:!0});tools=h(
"div.tools");way=h("p.faint.note",{"aria-live":"polite"});boxes=[];root;top;rows=null;byModule=!1;ownOnly=!1;redraw=T(()=>this.
draw());show(e){this.rows=e,this.root=Xe(this.state.source,e,this.byModule,this.ownOnly,this.state.view.query),this.top=
this.root,this.redraw()}fillTools(){let e=(t,s,n)=>h("button",{type:"button","aria-pressed":String(s),click:()=>{n(),this.
fillTools(),this.rows&&this.show(this.rows)}},t);k(this.tools,h("div.choices",{role:"group","aria-label":c("icicle")},e(
c("icicleStack"),!this.byModule,()=>{this.byModule=!1}),e(c("icicleModule"),this.byModule,()=>{this.byModule=!0})),!this.
byModule&&h("div.choices",{role:"group"},e(c("allFrames"),!this.ownOnly,()=>{this.ownOnly=!1}),e(c("ownFrames"),this.ownOnly,
()=>{this.ownOnly=!0})))}key(e){let t=[...this.top.children.values()].sort((o,a)=>a.bytes-o.bytes),s=this.top.parent?[...this.
top.parent.children.values()].sort((o,a)=>a.bytes-o.bytes):[this.top],n=s.indexOf(this.top),i={Escape:this.top.parent,Backspace:this.
top.parent,ArrowUp:this.top.parent,ArrowDown:t[0],Enter:t[0],ArrowRight:s[n+1],ArrowLeft:s[n-1],Home:this.root};e.key in
i&&(e.preventDefault(),this.open(i[e.key]??null))}open(e){e&&(this.top=e===this.top&&e.parent?e.parent:e,this.redraw())}boxAt(e){
let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top;return this.boxes.find(i=>s>=i.x&&s<i.x+i.
w&&n>=i.y&&n<i.y+I)?.node??null}point(e){let t=this.boxAt(e),s=this.canvas.getBoundingClientRect();if(this.tip.hidden=t===
null,!t)return;k(this.tip,h("b",{},t.name),t.source&&h("code.source",{},t.source),h("div.row",{},h("span",{},c("size")),
h("b",{},f(t.bytes))),h("div.row",{},h("span",{},c("share")),h("span",{},E(t.bytes,this.root.bytes))));let n=e.clientX-s.
left,i=n>s.width/2;this.tip.style.left=i?"":`${n+14}px`,this.tip.style.right=i?`${s.width-n+14}px`:"",this.tip.style.top=
`${e.clientY-s.top+16}px`}layOut(e){this.boxes=[];let t=[];for(let i=this.top.parent;i;i=i.parent)t.unshift(i);t.forEach(
(i,o)=>this.boxes.push({node:i,x:0,y:o*I,w:e}));let s=t.length,n=(i,o,a,l)=>{s=Math.max(s,l),this.boxes.push({node:i,x:o,
y:l*I,w:a});let u=o;for(let m of[...i.children.values()].sort((d,p)=>p.bytes-d.bytes)){let d=a*m.bytes/i.bytes;d>=1&&n(m,
u,d,l+1),u+=d}};return this.top.bytes>0&&n(this.top,0,e,t.length),(s+1)*I}colour(e){return e.kind===3?y("--rest"):e.kind===
4?e.name===c("unknown")?y("--rest"):Ze(e.name):`color-mix(in srgb, ${y(e.kind===0?"--own":e.kind===1?"--library":"--inne\
r")} ${100-Ge(e.name)}%, #000)`}draw(){if(!this.element.isConnected||!this.root)return;let e=this.canvas.parentElement.clientWidth,
t=this.layOut(e),s=L(this.canvas,t),n=this.state.view.query;s.font="12px system-ui, sans-serif",s.textBaseline="middle";
for(let i of this.boxes)s.globalAlpha=n&&i.node.kind!==3&&!i.node.matches?.3:1,s.fillStyle=this.colour(i.node),s.fillRect(
i.x,i.y,Math.max(1,i.w-1),I-1),!(i.w<34)&&(s.fillStyle=i.node.kind===3?y("--text"):"#fff",s.fillText(Qe(s,`${Je(i.node)}\
  ${f(i.node.bytes)}`,i.w-10),i.x+5,i.y+I/2));s.globalAlpha=1,this.canvas.setAttribute("aria-label",`${c("icicle")}: ${this.
top.name}, ${f(this.top.bytes)}. `+[...this.top.children.values()].sort((i,o)=>o.bytes-i.bytes).slice(0,5).map(i=>`${i.name}\
 ${f(i.bytes)}`).join("; ")),k(this.way,c("icicleHint"))}};function Ge(r){let e=0;for(let t=0;t<r.length;t++)e=Math.imul(
31,e)+r.charCodeAt(t)>>>0;return e%4*8}function Ze(r){return`color-mix(in srgb, ${x(r)} 78%, #000)`}function Je(r){if(r.
kind>2)return r.name;let[e,...t]=r.name.split(" "),s=t.join(" "),n=e.slice(e.lastIndexOf("/")+1);return s?`${s}  ${n}`:n}
function Qe(r,e,t){if(r.measureText(e).width<=t)return e;let s=0,n=e.length;for(;s<n;){let i=s+n+1>>1;r.measureText(`${e.
slice(0,i)}\u2026`).width<=t?s=i:n=i-1}return s>1?`${e.slice(0,s)}\u2026`:""}function et(r,e,t,s,n){let i=[];for(let a=0;a<r.n&&r.alloc[a]<=s;a++){if(r.free[a]<t||r.device[a]!==e)continue;let l=Math.
min(r.free[a],s)-Math.max(r.alloc[a],t);i.push({block:a,area:r.size[a]*Math.max(l,(s-t)/4e3)})}i.sort((a,l)=>l.area-a.area);
let o=i.slice(0,n).map(a=>a.block).sort((a,l)=>a-l);return{chosen:o,hidden:i.length-o.length}}function xe(r,e,t,s,n=1200){
let{chosen:i,hidden:o}=et(r,e,t,s,n),a=i.flatMap((u,m)=>[{ns:Math.max(r.alloc[u],t),i:m,isFree:!1},...r.free[u]<s?[{ns:r.
free[u],i:m,isFree:!0}]:[]]);a.sort((u,m)=>u.ns-m.ns||Number(m.isFree)-Number(u.isFree)||u.i-m.i);let l=i.map(u=>({block:u,
from:Math.max(r.alloc[u],t),to:Math.min(r.free[u],s),times:[],levels:[]}));return{strips:l,hidden:o,top:tt(r,l,a)}}function tt(r,e,t){
let s=[],n=0,i=0;for(let o of t){let a=r.size[e[o.i].block];if(!o.isFree){e[o.i].times.push(o.ns),e[o.i].levels.push(n),
s.push(o.i),n+=a,i=Math.max(i,n);continue}let l=s.indexOf(o.i);if(!(l<0)){s.splice(l,1),n-=a;for(let u=l;u<s.length;u++){
let m=e[s[u]],d=m.levels[m.levels.length-1]-a;m.times[m.times.length-1]===o.ns?m.levels[m.levels.length-1]=d:(m.times.push(
o.ns),m.levels.push(d))}}}return i}function he(r,e,t,s){for(let n of e.strips){if(t<n.from||t>n.to)continue;let i=n.times.
length-1;for(;i>0&&n.times[i]>t;)i--;if(s>=n.levels[i]&&s<n.levels[i]+r.size[n.block])return n}return null}var Me=14,b={left:70,right:10,top:18,bottom:24};function st(r,e){let t=0;return r.map(s=>{if(s.others>0)return x("other");
if(s.key===null||e!=="module")return x(s.key);let n=t++,i=$[n%$.length];return n<$.length?i:`color-mix(in srgb, ${i} 55%\
, ${n%20<10?"#fff":"#000"})`})}function K(r){return r.others>0?c("others",g(r.others)):r.key??c("unknown")}var te=class{constructor(e){
this.state=e;this.source=e.source;let t=h("div.plot",{},this.canvas,this.overlay,this.tip);this.element=h("section",{id:"\
timeline"},h("h2",{},c("timeline")),this.tools,this.legend,t,h("div.plot",{},this.overview),this.chosen,this.note,this.values),
this.listen(t),this.fillTools(),e.listen(s=>{("by"in s||"strips"in s||"device"in s)&&this.fillTools(),this.redraw()}),new ResizeObserver(
this.redraw).observe(t)}element;canvas=h("canvas",{tabindex:0,role:"img","data-plot":"timeline"});overlay=h("canvas.over\
lay",{"aria-hidden":"true"});overview=h("canvas.overview",{"aria-hidden":"true"});tip=h("div.tip",{hidden:!0});legend=h(
"div.legend");tools=h("div.tools");note=h("p.faint.note");chosen=h("div.chosen",{hidden:!0,"aria-live":"polite"});values=h(
"details",{toggle:()=>this.fillValues()});bins;colours=[];strips=null;top=1;hover=null;redraw=T(()=>this.draw());rehover=T(
()=>this.drawHover());source;fillTools(){let e=this.state.view,t=this.state,s=(a,l,u)=>h("button",{type:"button","aria-p\
ressed":String(l),click:u},a),n=h("div.choices",{role:"group","aria-label":c("by")},z.map(a=>s(c(a),e.by===a&&!e.strips,
()=>t.change({by:a,strips:!1}))),s(c("blocks"),e.strips,()=>t.change({strips:!0}))),i=this.source.devices.length<2?null:
h("select",{"aria-label":c("deviceLabel"),change:a=>t.change({device:a.target.selectedIndex})},this.source.devices.map((a,l)=>h(
"option",{selected:l===e.device},a))),o=(a,l,u)=>h("button",{type:"button","aria-label":a,title:a,click:u},l);k(this.tools,
n,i,h("div.choices",{role:"group"},o(c("zoomIn"),"+",()=>this.zoom(.5)),o(c("zoomOut"),"\u2212",()=>this.zoom(2)),o(c("l\
eft"),"\u2190",()=>this.pan(-.3)),o(c("right"),"\u2192",()=>this.pan(.3)),o(c("toPeak"),c("toPeak"),()=>this.toPeak()),o(
c("all"),c("all"),()=>t.change({from:this.source.start,to:this.source.end}))))}toPeak(){let e=this.source.drawn.peak,t=this.
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
-200,200)/300),this.timeAt(t)))}pinch(e,t,s){let n=[...e].find(([l])=>l!==t)[1],i=e.get(t),o=Math.abs(i-n),a=Math.abs(s-
n);o>10&&a>10&&this.zoom(o/a,this.timeAt((s+n)/2))}key(e){let{from:t,to:s,cursor:n}=this.state.view,o={"+":()=>this.zoom(
.6),"=":()=>this.zoom(.6),"-":()=>this.zoom(1/.6),0:()=>this.state.change({from:this.source.start,to:this.source.end}),Home:()=>this.
state.change({from:this.source.start,to:this.source.end}),p:()=>this.toPeak(),b:()=>this.state.change({strips:!this.state.
view.strips}),Escape:()=>this.state.change({cursor:null}),ArrowLeft:()=>e.shiftKey?this.moveCursor(-1):this.pan(-.1),ArrowRight:()=>e.
shiftKey?this.moveCursor(1):this.pan(.1),Enter:()=>this.look(this.xOf(n??(t+s)/2))}[e.key];!o||e.ctrlKey||e.metaKey||e.altKey||
(e.preventDefault(),o())}moveCursor(e){let{from:t,to:s,cursor:n}=this.state.view,i=(s-t)/this.plotWidth()*4;this.state.change(
{cursor:O((n??(t+s)/2)+e*i,t,s)})}look(e,t=-1){if(e<b.left)return;let s=this.strips?he(this.source.blocks,this.strips,this.
timeAt(e),this.levelAt(t)):null;this.chosen.hidden=s===null,s&&k(this.chosen,this.blockTip(s.block),this.wholeStack(s.block));
let n=this.timeAt(e),i=this.binAt(n);this.state.change({cursor:this.bins.exact||this.state.view.strips?n:this.bins.at[i]})}listenOverview(){
let e=!1,t=s=>{let n=this.overview.getBoundingClientRect(),{from:i,to:o}=this.state.view,a=(s.clientX-n.left-b.left)/(n.
width-b.left-b.right)*this.source.end;this.state.change({from:a-(o-i)/2,to:a+(o-i)/2})};this.overview.addEventListener("\
pointerdown",s=>{e=!0,this.overview.setPointerCapture(s.pointerId),t(s)}),this.overview.addEventListener("pointermove",s=>{
e&&t(s)}),this.overview.addEventListener("pointerup",()=>{e=!1})}get height(){return window.innerWidth<600?240:300}plotWidth(){
return Math.max(50,this.canvas.parentElement.clientWidth-b.left-b.right)}plotHeight(){return this.height-b.top-b.bottom}timeAt(e){
let{from:t,to:s}=this.state.view;return t+O((e-b.left)/this.plotWidth(),0,1)*(s-t)}xOf(e){let{from:t,to:s}=this.state.view;
return b.left+(e-t)/(s-t)*this.plotWidth()}levelAt(e){return(1-(e-b.top)/this.plotHeight())*this.top}yOf(e){return b.top+
(1-e/this.top)*this.plotHeight()}binAt(e){return O(Math.floor((e-this.bins.start)/this.bins.width),0,this.bins.n-1)}limit(){
return G(this.source,this.source.devices[this.state.view.device])}read(){let e=this.state.view;this.bins=this.source.bins(
e.device,e.from,e.to,this.plotWidth(),e.by),this.colours=st(this.bins.keys,e.by),this.strips=e.strips?xe(this.source.blocks,
e.device,e.from,e.to):null;let t=1;for(let n=0;n<this.bins.n;n++)t=Math.max(t,this.bins.max[n],this.bins.reserved[n]-1,this.
bins.used[n]-1);let s=this.limit();s!==null&&s<=t*1.6&&(t=Math.max(t,s)),this.top=t*1.04}draw(){if(!this.element.isConnected||
this.source.devices.length===0)return;this.read();let e=L(this.canvas,this.height);this.drawGrid(e),e.save(),e.beginPath(),
e.rect(b.left,b.top,this.plotWidth(),this.plotHeight()),e.clip(),this.strips?this.drawStrips(e,this.strips):this.drawLayers(
e),this.drawLines(e),e.restore(),this.drawMarks(e),this.drawOverview(),this.drawHover(),this.tellSoon()}tellSoon(){let e=performance.
now();if(clearTimeout(this.timer),e-this.told<200){this.timer=window.setTimeout(()=>this.tellSoon(),200);return}this.told=
e,this.fillLegend(),this.describe()}told=-1/0;timer=0;drawGrid(e){let{from:t,to:s}=this.state.view,n=this.plotWidth(),i=this.
plotHeight();e.font="11px system-ui, sans-serif",e.strokeStyle=y("--grid"),e.fillStyle=y("--faint"),e.lineWidth=1,e.textAlign=
"right",e.textBaseline="middle";let o=J(this.top,5);for(let u=0;u<=this.top;u+=o){let m=Math.round(this.yOf(u))+.5;R(e,b.
left,m,b.left+n,m),e.fillText(f(u),b.left-6,m)}e.textAlign="center",e.textBaseline="top";let a=W(s-t,n/110),l=this.source.
offset;for(let u=Math.ceil((t+l)/a)*a;u<=s+l;u+=a){let m=Math.round(this.xOf(u-l))+.5;R(e,m,b.top+i,m,b.top+i+4),e.fillText(
A(u,a,s+l),O(m,b.left+20,b.left+n-24),b.top+i+7)}this.drawSteps(e)}drawSteps(e){let t=this.source.column("steps.start"),
s=this.source.column("steps.step"),{from:n,to:i}=this.state.view,o=ue(t,n),a=ue(t,i);if(a-o>this.plotWidth())return;let l=this.
source.process.ooms.map(u=>this.xOf(u.time_ns-this.source.offset));e.textAlign="left",e.textBaseline="bottom";for(let u=o,
m=-1/0,d=-1/0;u<a;u++){let p=Math.round(this.xOf(t[u]))+.5,v=u+1<t.length?this.xOf(t[u+1]):1/0;p-m<12||v-p<12||(R(e,p,b.
top-4,p,b.top+this.plotHeight()),m=p,!(p-d<60||v-p<40||p>b.left+this.plotWidth()-50||l.some(w=>Math.abs(w-p-25)<45))&&(e.
fillText(`${c("step")} ${s[u]}`,p+3,b.top),d=p))}}drawLayers(e){let t=this.bins,s=t.n,n=new Float64Array(s),i=new Float64Array(
s+1);for(let o=0;o<=s;o++)i[o]=this.xOf(t.start+o*t.width);t.layers.forEach((o,a)=>{e.fillStyle=this.colours[a],e.beginPath();
for(let l=0;l<s;l++){let u=this.yOf(n[l]+o[l]);e.lineTo(i[l],u),e.lineTo(i[l+1],u)}for(let l=s-1;l>=0;l--){let u=this.yOf(
n[l]);e.lineTo(i[l+1],u),e.lineTo(i[l],u)}e.fill();for(let l=0;l<s;l++)n[l]+=o[l]})}drawStrips(e,t){let s=this.source.blocks,
n=this.state.view.by,i=s.keys[n],o=new Map(this.bins.keys.map((l,u)=>[l.others?"\0":l.key,this.colours[u]])),a=this.state.
view.query?new N(this.source,this.state.view.query):null;this.fillTotal(e,y("--rest")),e.lineWidth=.5,e.strokeStyle=y("-\
-surface");for(let l of t.strips){let u=this.source.text(i[l.block]);e.globalAlpha=a&&!a.row(s,l.block)?.15:1,e.fillStyle=
o.get(u)??o.get("\0")??x(u),this.stripPath(e,l),e.fill(),s.size[l.block]/this.top*this.plotHeight()>5&&e.stroke()}e.globalAlpha=
1}stripPath(e,t){let s=this.source.blocks.size[t.block];e.beginPath();for(let n=0;n<t.times.length;n++){let i=this.yOf(t.
levels[n]);e.lineTo(this.xOf(t.times[n]),i),e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),i)}for(let n=t.times.
length-1;n>=0;n--){let i=this.yOf(t.levels[n]+s);e.lineTo(this.xOf(n+1<t.times.length?t.times[n+1]:t.to),i),e.lineTo(this.
xOf(t.times[n]),i)}e.closePath()}fillTotal(e,t){let s=this.bins;e.fillStyle=t,e.beginPath(),e.moveTo(this.xOf(s.start),this.
yOf(0));for(let n=0;n<s.n;n++)e.lineTo(this.xOf(s.start+n*s.width),this.yOf(s.max[n])),e.lineTo(this.xOf(s.start+(n+1)*s.
width),this.yOf(s.max[n]));e.lineTo(this.xOf(s.start+s.n*s.width),this.yOf(0)),e.fill()}series(e,t,s){let n=this.bins;e.
beginPath();let i=!1;for(let o=0;o<n.n;o++){if(t[o]-s<0){i=!1;continue}let a=this.xOf(n.start+o*n.width),l=this.yOf(t[o]-
s);i?e.lineTo(a,l):e.moveTo(a,l),e.lineTo(this.xOf(n.start+(o+1)*n.width),l),i=!0}e.stroke()}drawLines(e){e.lineWidth=1,
e.strokeStyle=y("--least"),this.strips||this.series(e,this.bins.min,0),e.lineWidth=1.5,e.strokeStyle=y("--reserved"),this.
series(e,this.bins.reserved,1),e.setLineDash([5,3]),e.strokeStyle=y("--device"),this.series(e,this.bins.used,1);let t=this.
limit();t!==null&&t<=this.top&&(e.strokeStyle=y("--bad"),e.setLineDash([8,4]),R(e,b.left,this.yOf(t),b.left+this.plotWidth(),
this.yOf(t))),e.setLineDash([])}drawMarks(e){let t=this.source.offset,s=b.top+this.plotHeight(),n=o=>o>=b.left-1&&o<=b.left+
this.plotWidth()+1;e.textAlign="center",e.textBaseline="bottom",e.font="bold 11px system-ui, sans-serif";for(let o of this.
source.process.marks){let a=this.xOf(o.time_ns-t);n(a)&&(e.fillStyle=y("--accent"),e.beginPath(),e.moveTo(a,s-8),e.lineTo(
a+5,s),e.lineTo(a-5,s),e.fill())}for(let o of this.source.process.ooms){let a=this.xOf(o.time_ns-t);!n(a)||o.device!==this.
source.devices[this.state.view.device]||(e.strokeStyle=e.fillStyle=y("--bad"),e.lineWidth=1.5,R(e,a,b.top,a,s),e.fillText(
"OOM",O(a,b.left+14,b.left+this.plotWidth()-14),b.top-2))}let i=this.state.view.cursor;i!==null&&n(this.xOf(i))&&(e.strokeStyle=
y("--accent"),e.lineWidth=2,R(e,this.xOf(i),b.top,this.xOf(i),s))}drawOverview(){let t=L(this.overview,40),s=this.plotWidth(),
n=this.state.view,i=this.source.bins(n.device,this.source.start,this.source.end,s,n.by),o=1;for(let u=0;u<i.n;u++)o=Math.
max(o,i.max[u]);t.fillStyle=y("--rest");for(let u=0;u<i.n;u++){let m=b.left+u/i.n*s,d=40-i.max[u]/o*36;t.fillRect(m,d,Math.
max(1,s/i.n+.3),40-d)}let a=b.left+n.from/this.source.end*s,l=b.left+n.to/this.source.end*s;t.fillStyle=y("--shade"),t.fillRect(
b.left,0,a-b.left,40),t.fillRect(l,0,b.left+s-l,40),t.strokeStyle=y("--accent"),t.lineWidth=2,t.strokeRect(a,1,Math.max(
2,l-a),38)}drawHover(){let e=L(this.overlay,this.height),t=this.hover,s=t&&this.bins&&t.x>=b.left&&t.x<=b.left+this.plotWidth();
if(this.tip.hidden=!s,!t||!s)return;e.strokeStyle=y("--text"),e.globalAlpha=.6,R(e,t.x,b.top,t.x,b.top+this.plotHeight()),
this.brush!==null&&(e.fillStyle=y("--accent"),e.globalAlpha=.2,e.fillRect(Math.min(this.brush,t.x),b.top,Math.abs(t.x-this.
brush),this.plotHeight()));let n=this.timeAt(t.x),i=this.levelAt(t.y),o=this.strips?he(this.source.blocks,this.strips,n,
i):null;o&&(e.globalAlpha=1,e.lineWidth=2,this.stripPath(e,o),e.stroke()),k(this.tip,o?this.blockTip(o.block):this.binTip(
n,i));let a=t.x>b.left+this.plotWidth()/2;this.tip.style.left=a?"":`${t.x+14}px`,this.tip.style.right=a?`${this.tip.parentElement.
clientWidth-t.x+14}px`:"",this.tip.style.top=`${Math.min(t.y,60)}px`}stepAt(e){let t=this.source.column("steps.start"),s=this.
source.column("steps.end"),n=ue(t,e+1)-1;return n>=0&&e<=s[n]?this.source.column("steps.step")[n]:null}when(e){let t=this.
stepAt(e),{from:s,to:n}=this.state.view,i=A(e+this.source.offset,(n-s)/1e3);return t===null?i:`${i} \xB7 ${c("step")} ${t}`}binTip(e,t){
let s=this.bins,n=this.binAt(e),i=this.source.process.marks.filter(m=>Math.abs(this.xOf(m.time_ns-this.source.offset)-this.
xOf(e))<5),o=s.layers.map((m,d)=>({k:d,value:m[n]})).filter(m=>m.value>0),a=0,l=-1;for(let m of o)t>=a&&t<a+m.value&&(l=
m.k),a+=m.value;o.sort((m,d)=>d.value-m.value);let u=o.slice(0,9);return[h("b",{},this.when(s.exact?e:s.at[n])),...i.map(
m=>h("div.mark",{},`\u25B2 ${m.name??""} ${m.text}`)),h("div.row",{},h("span",{},c("allocated")),h("b",{"data-value":"al\
located"},f(s.max[n]))),...this.strips?[]:u.map(m=>h(m.k===l?"div.row.under":"div.row",{},h("span",{},F(this.colours[m.k]),
K(s.keys[m.k])),h("span",{},f(m.value)))),...s.reserved[n]>0?[h("div.row",{},h("span",{},c("reserved")),h("span",{},f(s.
reserved[n]-1)))]:[],...s.used[n]>0?[h("div.row",{},h("span",{},c("used")),h("span",{},f(s.used[n]-1)))]:[]]}blockTip(e){
let t=this.source.blocks,s=this.source.frames(t.stack[e]),n=this.source.text(t.tensor[e]),i=this.source.offset,o=(l,u)=>u===
null?[]:[h("div.row",{},h("span",{},l),h("span",{},u))],a=t.free[e]===1/0?c("stillAlive"):B(t.free[e]-t.alloc[e]);return[
h("b",{},n??c("block")),...o(c("size"),f(t.size[e])),...z.flatMap(l=>o(c(l),this.source.text(t.keys[l][e]))),...o(c("all\
ocatedAt"),A(t.alloc[e]+i,Math.max(1,(this.state.view.to-this.state.view.from)/1e3))),...o(c("lifetime"),a),...o(c("step"),
t.step[e]>0?String(t.step[e]-1):null),h("code",{},s.length?C(P(s)):c("noStack")),...P(s)?.source?[h("code.source",{},P(s).
source)]:[]]}wholeStack(e){return h("ol.stack",{},this.source.frames(this.source.blocks.stack[e]).map(t=>h("li",{},h(t.kind===
0?"code.own":"code",{},C(t)),t.source&&h("code.source",{},t.source))))}fillLegend(){let e=this.bins,t=(l,u)=>h("span",{},
h(`i.${l}`),u),s=e.keys.map((l,u)=>({k:l,i:u,most:Math.max(...e.layers[u])})).filter(l=>l.most>0),n=s.map(l=>l.most).sort(
(l,u)=>u-l)[Me-1]??0,i=s.filter(l=>l.most>=n).slice(0,Me),o=l=>l.some(u=>u>0),a=this.limit();k(this.legend,i.reverse().map(
({k:l,i:u})=>h("span",{},F(this.colours[u]),K(l))),s.length>i.length&&h("span",{},`+ ${s.length-i.length}`),this.strips&&
h("span",{},F(y("--rest")),c("smaller")),o(e.reserved)&&t("line-reserved",c("reserved")),o(e.used)&&t("line-used",c("use\
d")),a!==null&&t("line-limit",`${c("limit")} ${f(a)}`),!this.strips&&!e.exact&&t("line-least",c("least")))}describe(){let e=this.
bins,{from:t,to:s}=this.state.view,n=this.source.offset,i=0;for(let l=1;l<e.n;l++)e.max[l]>e.max[i]&&(i=l);let o=Math.max(
1,(s-t)/100);this.canvas.setAttribute("aria-label",`${c("timeline")}: ${A(t+n,o)} \u2013 ${A(s+n,o)}, ${c("peakFigure")}\
 ${f(e.max[i])} ${c("at",A(e.at[i]+n,o))}. ${c("hint")}`);let a=B(e.width);k(this.note,e.exact?c("exact"):c("binned",a),
". ",c("hint")),k(this.values,h("summary",{},c("table"))),this.values.open&&this.fillValues()}fillValues(){if(!this.values.
open||this.values.childElementCount>1)return;let e=this.state.view,t=this.source.bins(e.device,e.from,e.to,24,e.by),s=Array.
from({length:t.n},(n,i)=>[this.when(t.start+i*t.width),f(t.max[i]),t.keys.map((o,a)=>({k:o,value:t.layers[a][i]})).sort(
(o,a)=>a.value-o.value).slice(0,3).filter(o=>o.value>0).map(o=>`${K(o.k)} ${f(o.value)}`).join(", "),t.reserved[i]>0?f(t.
reserved[i]-1):"-"]);this.values.append(S([c("time"),c("allocated"),c(e.by),c("reserved")],s,[1,3]))}};function R(r,e,t,s,n){
r.beginPath(),r.moveTo(e,t),r.lineTo(s,n),r.stroke()}function ue(r,e){let t=0,s=r.length;for(;t<s;){let n=t+s>>1;r[n]<e?
t=n+1:s=n}return t}var nt=[...z,"line","tensor"],me=40,se=class{constructor(e){this.state=e;this.icicle=new ee(e),this.element=h("section",
{id:"peak"},h("h2",{},c("peak")),this.head,h("div.halves",{},h("div",{},this.tools,this.sums),this.icicle.element)),e.listen(
t=>{("cursor"in t||"device"in t||"query"in t||"other"in t)&&this.refresh()}),this.refresh()}element;head=h("div.tools");tools=h(
"div.tools");sums=h("div");icicle;by="category";rows=null;total=0;others=null;refresh(){let{cursor:e,device:t}=this.state.
view,s=this.state.source,n=s.drawn.peak;e===null?(this.rows=s.peakRows,this.total=n?.bytes??0):(this.rows=s.hasAll(e,e)?
ce(s,t,e):null,this.total=this.rows?this.rows.bytes.reduce((i,o)=>i+o,0):this.binAt(e).max),!this.rows&&(this.by==="line"||
this.by==="tensor")&&(this.by="category"),this.fillHead(),this.fillTools(),this.fillSums(),this.icicle.element.hidden=!this.
rows,this.rows&&this.icicle.show(this.rows)}sumsAt(e){let t=this.state.source;return e===null?Q(t,t.peakRows,this.by):t.
hasAll(e,e)?Q(t,ce(t,this.state.view.device,e),this.by):this.binAt(e).layers}binAt(e){let t=this.by==="line"||this.by===
"tensor"?"category":this.by,s=this.state.source.end/this.state.source.drawn.timeline.bins,n=this.state.source.bins(this.
state.view.device,e,e+s/100,.01,t),i=Math.max(0,Math.min(n.n-1,Math.floor((e-n.start)/n.width))),o=n.keys.map((a,l)=>({key:K(
a),bytes:n.layers[l][i],blocks:NaN,stack:0}));return{max:n.max[i],layers:o.filter(a=>a.bytes>0).sort((a,l)=>l.bytes-a.bytes)}}fillHead(){
let{cursor:e}=this.state.view,t=this.state.source,s=t.offset,n=e??t.drawn.peak?.time_ns??0,i=_(n+s);k(this.head,h("b",{"\
data-value":"moment"},e===null?c("peakMoment",i):c("moment",i)),h("span",{"data-value":"total","data-exact":this.total},
Z(this.total)),e!==null&&h("button",{type:"button",click:()=>this.state.change({cursor:null})},c("backToPeak")),this.state.
view.other===null?h("button",{type:"button",click:()=>this.state.change({other:e??-1})},c("compare")):h("span",{},c("com\
paredWith",this.state.view.other<0?c("toPeak"):_(this.state.view.other+s))," ",h("button",{type:"button",click:()=>this.
state.change({other:null})},c("stopComparing"))))}fillTools(){let e=this.rows?nt:z;k(this.tools,h("div.choices",{role:"g\
roup","aria-label":c("composition")},e.map(t=>h("button",{type:"button","aria-pressed":String(t===this.by),click:()=>{this.
by=t,this.fillTools(),this.fillSums()}},c(t)))))}fillSums(){let e=this.state.source,t=this.state.view.query,s=this.rows,
n=t&&s?new N(e,t):null,i=s?Q(e,s,this.by,n?l=>n.row(s,l):void 0):this.binAt(this.state.view.cursor??0).layers,o=i.reduce(
(l,u)=>l+u.bytes,0),{other:a}=this.state.view;if(this.others=a===null?null:new Map(this.sumsAt(a<0?null:a).map(l=>[l.key,
l.bytes])),this.others&&!n){let l=new Set(i.map(u=>u.key));for(let u of this.others.keys())l.has(u)||i.push({key:u,bytes:0,
blocks:0,stack:0});i.sort((u,m)=>Math.abs(this.changeOf(m))-Math.abs(this.changeOf(u))||m.bytes-u.bytes)}k(this.sums,n&&
h("p.found",{"data-value":"found"},i.length?c("results",f(o)):c("noMatch")),S([this.by==="line"?c("place"):c("name"),c("\
size"),c("share"),c("blocksHead"),this.others?c("change"):""],i.slice(0,me).map(l=>this.row(l)),[1,2,3]),i.length>me&&h(
"p.faint",{},c("shown",me,g(i.length)))),this.sums.dataset.by=this.by}row(e){let t=this.by==="line"||this.by==="tensor"?
"var(--accent)":x(e.key),s=this.by==="line"?P(this.state.source.frames(e.stack))?.source:null,n=h("span",{title:e.key??"",
"data-key":e.key??c("unknown"),"data-exact":e.bytes},e.key??c("unknown"));return[h(this.by==="line"?"div.key.mono":"div.\
key",{},this.by!=="line"&&this.by!=="tensor"&&F(t),n,s&&h("code.source",{},s)),f(e.bytes),E(e.bytes,this.total),Number.isNaN(
e.blocks)?"-":g(e.blocks),this.others?this.change(e):D(e.bytes/Math.max(1,this.total),t)]}changeOf(e){return e.bytes-(this.
others?.get(e.key)??0)}change(e){let t=this.changeOf(e);return h(t>0?"span.more":"span.less",{"data-change":t},t===0?"=":
`${t>0?"+":""}${f(t)}`)}};function it(r,e){let t=r.column(`bins.${e}.max`),s=t.reduce((o,a)=>Math.max(o,a),1),i=t.findIndex(o=>o>s*.01)/Math.max(1,
t.length);return i>.25?r.end*Math.max(0,i-(1-i)*.04):r.start}var ne=class{constructor(e){this.source=e;let t=e.drawn.peak?.
device??0;this.view={from:it(e,t),to:e.end,device:t,by:"category",strips:!1,cursor:null,other:null,query:""},this.read()}view;listeners=[];listen(e){
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
t.to=s(n[2]));let i=e.get("by");i&&z.includes(i)&&(t.by=i),t.strips=e.get("blocks")==="1";let o=Number(e.get("device")??
t.device);Number.isInteger(o)&&o>=0&&o<this.source.devices.length&&(t.device=o);let a=e.get("at");a!==null&&Number.isFinite(
Number(a))&&(t.cursor=s(a));let l=e.get("with");l==="peak"?t.other=-1:l!==null&&Number.isFinite(Number(l))&&(t.other=s(l)),
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
M.top+(1-i/this.top)*t)+.5;R(e,M.left,a,M.left+this.width,a),e.fillText(f(i),M.left-6,a)}e.textBaseline="top",e.textAlign=
"center";let s=Math.max(1,W(this.n,this.width/90)),n=this.options.ticks??Array.from({length:Math.ceil(this.n/s)},(i,o)=>({
at:o*s+.5,text:this.options.x(o*s)}));for(let{at:i,text:o}of n)e.fillText(o,M.left+Math.max(10,i/this.n*this.width),M.top+
t+6)}draw(){if(!this.element.isConnected)return;let e=L(this.canvas,this.options.height),t=this.options.height-M.top-M.bottom;
this.top=1;for(let s of this.curves)for(let n of s.values)n>this.top&&(this.top=n);this.top*=1.05,this.drawAxes(e,t);for(let s of this.
curves)this.drawCurve(e,s,t)}drawCurve(e,t,s){let n=Math.min(this.n,Math.ceil(this.width)),i=M.top+s,o=!1;e.beginPath();
for(let a=0;a<n;a++){let l=Math.floor(a*this.n/n),u=Math.floor((a+1)*this.n/n),m=NaN;for(let w=l;w<Math.max(l+1,u);w++)t.
values[w]<=m||(m=t.values[w]);let d=M.left+a/n*this.width,p=M.left+(a+1)/n*this.width;if(Number.isNaN(m)||m===void 0){o=
!1;continue}let v=M.top+(1-m/this.top)*s;t.filled?e.rect(d,v,Math.max(.6,p-d-(p-d>4?1:0)),i-v):o?e.lineTo(d,v):e.moveTo(
d,v),t.filled||e.lineTo(p,v),o=!0}e.lineWidth=1.6,t.filled?e.fillStyle=t.colour:e.strokeStyle=t.colour,t.filled?e.fill():
e.stroke()}point(e){let t=this.placeAt(e),s=this.canvas.getBoundingClientRect(),n=e.clientX-s.left,i=this.curves.map(a=>({
c:a,v:a.values[t]})).filter(({v:a})=>a>=0).sort((a,l)=>this.curves.length>8?l.v-a.v:0).slice(0,10);this.tip.hidden=i.length===
0,k(this.tip,h("b",{},this.options.x(t)),i.map(({c:a,v:l})=>{let u=h("i.swatch");return u.style.background=a.colour,h("d\
iv.row",{},h("span",{},u,a.name),h("span",{},f(l)))}));let o=n>s.width/2;this.tip.style.left=o?"":`${n+14}px`,this.tip.style.
right=o?`${s.width-n+14}px`:"",this.tip.style.top="10px"}};var U=13,rt=400,ie=class{constructor(e){this.state=e;let t=h("div.plot",{},this.canvas,this.tip);this.element=h("div",{},
t);let s=this.column("blocks");for(let n=0,i=0;n<s.length;i+=s[n++])this.first.push(i);this.canvas.addEventListener("poi\
ntermove",n=>this.point(n)),this.canvas.addEventListener("pointerleave",()=>{this.tip.hidden=!0}),new ResizeObserver(this.
redraw).observe(t)}element;canvas=h("canvas",{role:"img","data-plot":"segments"});tip=h("div.tip",{hidden:!0});pieces=[];rowBytes=1;nRows=0;first=[];redraw=T(
()=>this.draw());column(e){return this.state.source.column(`map.${e}`)}layOut(){let e=this.column("size"),t=[...e].sort(
(o,a)=>a-o);this.rowBytes=Math.max(1,t[Math.min(2,t.length-1)]??1,(t[0]??1)/40),this.pieces=[];let s=this.rowBytes/250,n=0,
i=0;for(let o=0;o<e.length&&i<rt;o++){n>0&&n+e[o]>this.rowBytes&&(n=0,i++);for(let a=0;a<e[o];a+=this.rowBytes){let l=Math.
min(e[o],a+this.rowBytes);this.pieces.push({segment:o,from:a,to:l,x:n,y:i*U}),n+=l-a+s,l<e[o]&&(n=0,i++)}}this.nRows=i+1}draw(){
if(!this.element.isConnected)return;this.layOut();let e=L(this.canvas,this.nRows*U+2),t=this.canvas.parentElement.clientWidth,
s=t/this.rowBytes,n=this.column("start"),i=this.column("bytes"),o=this.column("category"),a=this.column("blocks");for(let l of this.
pieces){e.fillStyle=y("--gap"),e.fillRect(l.x*s,l.y,Math.max(1,(l.to-l.from)*s),U-2);for(let u=this.first[l.segment];u<this.
first[l.segment]+a[l.segment];u++){let m=Math.max(n[u],l.from),d=Math.min(n[u]+i[u],l.to);d<=m||(e.fillStyle=x(this.state.
source.text(o[u])),e.fillRect((l.x+m-l.from)*s,l.y,Math.max(.7,(d-m)*s-.4),U-2))}}this.canvas.setAttribute("aria-label",
`${c("map")}: ${this.column("size").length}. ${c("mapHint")}`)}blockAt(e,t){let s=this.column("start"),n=this.column("by\
tes");for(let i=this.first[e.segment];i<this.first[e.segment]+this.column("blocks")[e.segment];i++)if(t>=s[i]&&t<s[i]+n[i])
return i;return-1}point(e){let t=this.canvas.getBoundingClientRect(),s=e.clientX-t.left,n=e.clientY-t.top,i=s/t.width*this.
rowBytes,o=this.pieces.find(v=>n>=v.y&&n<v.y+U&&i>=v.x&&i<v.x+v.to-v.from);if(this.tip.hidden=!o,!o)return;let a=o.from+
i-o.x,l=this.blockAt(o,a),u=this.state.source,m=(v,w)=>h("div.row",{},h("span",{},v),h("span",{},w)),d=l>=0?u.frames(this.
column("stack")[l]):[];k(this.tip,h("b",{},l<0?c("gap"):u.text(this.column("tensor")[l])??c("block")),l<0?m(c("size"),f(
this.gapAt(o,a))):m(c("size"),f(this.column("bytes")[l])),l>=0&&m(c("category"),u.text(this.column("category")[l])??c("u\
nknown")),m(c("segment"),`${f(this.column("size")[o.segment])}, `+c(this.column("small")[o.segment]?"smallPool":"largePo\
ol")),m(c("address"),`0x${this.column("address")[o.segment].toString(16)}`),l>=0&&h("code",{},d.length?C(P(d)):c("noStac\
k")));let p=s>t.width/2;this.tip.style.left=p?"":`${s+14}px`,this.tip.style.right=p?`${t.width-s+14}px`:"",this.tip.style.
top=`${n+16}px`}gapAt(e,t){let s=this.column("start"),n=this.column("bytes"),i=0,o=this.column("size")[e.segment];for(let a=this.
first[e.segment];a<this.first[e.segment]+this.column("blocks")[e.segment];a++)if(s[a]+n[a]<=t)i=Math.max(i,s[a]+n[a]);else if(s[a]>
t){o=s[a];break}return o-i}};function H(r,e,...t){return h("section",{id:r},h("h2",{},e),t)}function ot(r){return r===null?c("beforeSteps"):c("inStep",
r)}function at(r){return!r||!r.file?r?.function??c("unknown"):`${r.file}${r.line?`:${r.line}`:""}${r.function?` ${r.function}`:
""}`}function lt(r,e){if(!e?.file)return null;let t=r.column("frames.file"),s=r.column("frames.line");for(let n=0;n<t.length;n++)
if(s[n]===e.line&&r.text(t[n])===e.file)return r.text(r.column("frames.source")[n]);return null}function Se(r,e,t){let s=t??
lt(r,e);return h("div.site",{},h("code",{},at(e)),s&&h("code.source",{},s))}function Ae(r){let e=r.process,t=e.peak,s=r.
report.health,n=s.verdict??"",i=["ran_out","leaks","killed"].includes(n),o=["grew","nearly_ran_out"].includes(n),a=s.text??
"",l=(m,d,p,v,w)=>h("div.figure",{},h("span",{},m),h("b",{"data-value":v,"data-exact":w??void 0},d),h("small",{},p)),u=t?
G(r,t.device):null;return h("section.summary",{id:"overview"},h(i?"p.verdict.bad":o?"p.verdict.warn":"p.verdict",{role:"\
status"},a),s.next&&h("p",{},c("next")," ",h("code",{},s.next)),h("div.figures",{},t&&l(c("peakFigure"),f(t.allocated),`${t.
device}, ${ot(t.step)}, ${c("at",_(t.time_ns))}`,"peak",t.allocated),t&&l(c("reservedFigure"),f(t.reserved),t.reserved?`${E(
t.allocated,t.reserved)} ${c("allocated")}`:c("unknown"),"reserved"),u!==null&&l(c("limitFigure"),f(u),t?E(t.allocated,u):
"","limit"),l(c("stepsFigure"),g(e.steps.count),e.steps.mean_ns?c("mean",B(e.steps.mean_ns)):"","steps"),l(c("eventsFigu\
re"),g(e.events),B(e.end_ns-e.start_ns),"events")),ct(e))}function ct(r){let e=r.forecast;return!e||r.oom_count>0||e.seconds_to_oom===
null&&e.steps_to_oom===null?null:h("p.verdict.warn",{},e.steps_to_oom!==null?c("inSteps",g(e.steps_to_oom)):c("inSeconds",
B(e.seconds_to_oom*1e9))," ",e.advice.join(" "))}function ht(r){return r.fixes.length===0?null:[h("h3",{},c("fixes")),S(
[c("what"),c("saves"),c("proof")],r.fixes.map(e=>[h("div",{},e.text,e.conf&&h("code.source",{},e.conf)),e.saves_bytes===
null?"-":f(e.saves_bytes),h(e.proof==="estimate"?"span.badge":"span.badge.good",{},c(`proof_${e.proof}`))]),[1])]}function ut(r){
let e=r.evidence.replays;return e?.length?[h("h3",{id:"settings"},c("settings")),S([c("conf"),c("result"),c("needs")],e.
map(t=>[h("code",{},t.conf||c("defaults")),t.runs_out_before?c("sooner"):t.runs_out?c("runsOut"):h("span.badge.good",{},
c("fits")),f(t.needs)]),[2])]:null}function mt(r){let e=[["allocated","allocated"],["reserved","reserved"],["limitFigure",
"limit"],["gap","largest_free"],["otherProcesses","others"]],t=Object.entries(r.evidence.categories??{}).sort((n,i)=>i[1]-
n[1]),s=t.reduce((n,[,i])=>n+i,0);return h("div.halves",{},S([c("evidence"),c("size")],[[c("request"),f(r.request_bytes)],
...e.filter(([,n])=>typeof r.evidence[n]=="number").map(([n,i])=>[c(n),f(r.evidence[i])])],[1]),t.length>0&&S([c("catego\
ry"),c("size"),""],t.map(([n,i])=>[h("span",{},F(x(n)),n),f(i),D(i/s,x(n))]),[1]))}function _e(r){let e=r.source,t=e.report.
explain?.ooms??[];return t.length===0?null:H("ooms",c("ooms"),t.map(s=>h("article",{},h("p.verdict.bad",{},s.text??c(`ca\
use_${s.cause}`)),h("p",{},c("oomLine",f(s.request_bytes),s.step??"-",f(s.evidence.allocated),f(s.evidence.reserved))," ",
h("button",{type:"button",click:()=>de(r,s.time_ns-e.offset)},c("at",_(s.time_ns)))),Se(e,s.site,s.site?.source),[s.module,
s.stage].some(Boolean)&&h("p.faint",{},[s.module,s.stage].filter(Boolean).join(" \xB7 ")),ht(s),mt(s),ut(s))))}function de(r,e){
let t=r.source.end/40;r.change({from:e-t,to:e+t,cursor:e}),document.getElementById("timeline").scrollIntoView({block:"st\
art"})}function dt(r,e){let t=e.bytes_per_step!==null?c("perStep",f(e.bytes_per_step)):e.bytes_per_second!==null?`${f(e.
bytes_per_second)}/s`:"-",s=(n,i)=>i?h("div.row",{},h("span",{},c(n)),h("span",{},i)):null;return h("article.leak",{},Se(
r,e,e.source??null),h("div.pairs",{},s("grows",h("b",{},t)),s("size",Z(e.growth_bytes)),s("step",e.first_step!==null?c("\
since",e.first_step):null),s("category",e.category),s("module",e.module),s("keptBy",e.kept_by),s("confidence",e.confidence!==
null?E(e.confidence,1):null)),e.evidence&&h("p.faint",{},e.evidence))}function Le(r){let e=r.process;return H("leaks",c(
"leaks"),e.leaks.length===0&&h("p",{},e.leak_text??c("noLeak")),e.leaks.map(t=>dt(r,t)))}function $e(r){let{map:e}=r.source.
drawn;if(!e)return null;let t=r.source.process.fragmentation.find(s=>s.device===e.device);return H("map",c("map"),t&&h("\
p",{},c("mapLine",f(t.reserved),t.device,f(t.allocated),f(t.largest_free))," ",h("button",{type:"button",click:()=>de(r,
e.time_ns)},c("at",_(e.time_ns+r.source.offset)))),h("p.faint",{},c("mapHint")),new ie(r).element)}function Oe(r){let e=r.
source,t=e.drawn.steps.shown;if(t===0)return null;let s=e.column("steps.peak"),n=e.column("steps.end_bytes"),i=e.column(
"steps.step"),o=e.column("steps.start"),a=e.column("steps.end"),l=e.column("steps.bytes"),u=p=>{let v=(a[p]-o[p])*.1;r.change(
{from:o[p]-v,to:a[p]+v}),document.getElementById("timeline").scrollIntoView({block:"start"})},m=new q([{name:c("stepPeak"),
colour:"#86b0d2",values:s,filled:!0},{name:c("stepEnd"),colour:"#d6604d",values:n}],{height:190,label:c("steps"),x:p=>`${c(
"step")} ${i[Math.min(p,t-1)]}`,click:u}),d=Array.from({length:t},(p,v)=>v).sort((p,v)=>s[v]-s[p]||p-v).slice(0,12);return H(
"steps",c("steps"),m.element,h("h3",{},c("largestSteps")),S([c("step"),c("stepPeak"),c("stepEnd"),c("stepBytes"),c("step\
Allocations"),c("stepTime")],d.map(p=>[h("button.link",{type:"button",click:()=>u(p)},String(i[p])),f(s[p]),f(n[p]),f(l[p]),
g(e.column("steps.allocations")[p]),B(a[p]-o[p])]),[1,2,3,4,5]))}function Fe(r){let e=r.drawn.processes,t=r.report.ranks;
if(e.length<2)return null;let s=Math.max(...e.map(u=>u.peak??0),1),n=u=>u.rank!==null?c("rank",u.rank):c("pid",u.pid??"-"),
i=e.map((u,m)=>({p:u,i:m})).filter(({p:u})=>u.has_curve).map(({p:u,i:m})=>({name:n(u),colour:$[m%$.length],values:r.column(
`process.${m}`).map(d=>d>0?d-1:NaN)})),o=Math.max(...e.map(u=>u.end_ns)),a=i[0]?.values.length??1,l=W(o,10);return H("ra\
nks",c("ranks"),t?.says?.map(u=>h("p",{},u)),S([c("process"),c("rankHost"),c("rankPeak"),"",c("step"),c("rankEnd")],e.slice(
0,256).map(u=>[n(u),u.host??"-",h("span",{"data-exact":u.peak??void 0},f(u.peak)),D((u.peak??0)/s,"var(--accent)"),u.peak_step===
null?"-":String(u.peak_step),_(u.end_ns)]),[2,4,5]),e.length>256&&h("p.faint",{},c("shown",256,e.length)),i.length>0&&[h(
"h3",{},c("rankCurves")),new q(i,{height:190,label:c("rankCurves"),x:u=>A(u/a*o,o/100,o),ticks:Array.from({length:Math.floor(
o/l)+1},(u,m)=>({at:m*l/o*a,text:A(m*l,l,o)}))}).element])}function Te(r){let e=r.process.accounting.filter(t=>t.moment===
"peak");return e.length===0?null:H("device",c("device"),e.map(t=>{let s=[...t.segments.map(n=>[n.owner,n.bytes]),[c("con\
text"),t.context],[c("otherProcesses"),t.others],[c("unexplained"),t.unexplained],[c("free"),t.total!==null&&t.used!==null?
t.total-t.used:null]];return[h("h3",{},`${t.device} ${c("at",_(t.time_ns))}`),S([c("owner"),c("size"),c("share"),""],s.filter(
([,n])=>n).map(([n,i])=>[h("span",{},F(x(n)),n),f(i),E(i,t.total??0),D(i/(t.total??i),x(n))]),[1,2])]}))}function Ee(r){
let e=r.drawn,t=r.process,s=[...t.quality.doubts,...r.report.not_recorded],n=u=>_(u+r.offset),{all:i,shown:o,window_start_ns:a,
window_end_ns:l}=e.blocks;return o<i?s.push(a!==null&&l!==null?c("leftBlocks",g(i),g(o),n(a),n(l)):c("leftBlocksOnly",g(
i),g(o))):s.push(c("leftNothing",g(i))),e.timeline.known_ns>0&&s.push(c("givenUp",n(e.timeline.known_ns))),s.push(c("lef\
tBins",g(e.timeline.bins),B(r.end/e.timeline.bins))),e.peak&&e.peak.rows_shown<e.peak.rows&&s.push(c("leftPeak",g(e.peak.
rows),g(e.peak.rows_shown),f(e.peak.bytes_shown),f(e.peak.bytes))),e.steps.shown<e.steps.all&&s.push(c("leftSteps",g(e.steps.
all),g(e.steps.shown))),e.map&&e.map.segments_shown<e.map.segments&&s.push(c("leftMap",g(e.map.segments),g(e.map.segments_shown))),
e.processes.length>1&&s.push(c("leftRanks",pe(t))),H("quality",c("quality"),h("ul",{},s.map(u=>h("li",{},u))),h("p.faint",
{},c("full",""),h("code",{},`tidemark query ${ke(r.report.run,1)} \u2026`)))}function pe(r){return r.rank!==null?c("rank",
r.rank):r.pid!==null?c("pid",r.pid):c("process")}function Be(r){let e=r.source.process;return e.marks.length===0?null:H(
"marks",c("marks"),S([c("time"),c("step"),c("name"),""],e.marks.slice(0,100).map(t=>[h("button.link",{type:"button",click:()=>de(
r,t.time_ns-r.source.offset)},_(t.time_ns)),t.step===null?"-":String(t.step),t.name??"-",t.text]),[1]),e.mark_count>e.marks.
length&&h("p.faint",{},c("shown",e.marks.length,g(e.mark_count))))}var Ce=document.getElementById("page");function fe(r){try{return localStorage.getItem(`tidemark.${r}`)}catch{return null}}
function Pe(r,e){try{localStorage.setItem(`tidemark.${r}`,e)}catch{}}function Re(r){r==="light"||r==="dark"?document.documentElement.
dataset.theme=r:delete document.documentElement.dataset.theme}function ft(r){let e=r.source.report,t=r.source.process,s=h(
"input",{type:"search",placeholder:c("search"),"aria-label":c("search"),value:r.view.query}),n=0;s.addEventListener("inp\
ut",()=>{clearTimeout(n),n=window.setTimeout(()=>r.change({query:s.value.trim()}),120)});let i=h("select",{"aria-label":c(
"theme"),change:a=>{let l=a.target.value;Pe("theme",l),Re(l),r.change({})}},["auto","light","dark"].map(a=>h("option",{value:a,
selected:(fe("theme")??"auto")===a},c(`theme${a[0].toUpperCase()}${a.slice(1)}`)))),o=h("button",{type:"button",click:()=>{
let a=Y()==="en"?"zh":"en";Pe("language",a),ae(a),ze(r.source)}},c("language"));return h("header",{},h("a.skip",{href:"#\
overview"},c("skip")),h("div.name",{},h("h1",{},e.run.replace(/\/+$/,"").split("/").pop()??e.run),h("p.faint",{},[pe(t),
t.host,t.command,c("started",e.started_utc)].filter(Boolean).join(" \xB7 "))),h("div.tools",{},s,i,o))}function bt(r){return h(
"nav",{"aria-label":c("overview")},r.map(e=>{let t=e.querySelector("h2")?.textContent??c("overview");return h("a",{href:`\
#${e.id}`,click:s=>{s.preventDefault(),e.scrollIntoView({block:"start"}),e.setAttribute("tabindex","-1"),e.focus({preventScroll:!0})}},
t)}))}function ze(r){let e=new ne(r),t=r.process,n=[Ae(r),r.devices.length>0&&new te(e).element,_e(e),r.drawn.peak&&new se(
e).element,(t.leaks.length>0||t.steps.count>0)&&Le(r),$e(e),Oe(e),Fe(r),Te(r),Be(e),Ee(r)].filter(i=>i instanceof HTMLElement);
k(Ce,ft(e),bt(n),h("main",{},n),h("footer",{},c("madeBy",r.report.tidemark))),window.onhashchange=()=>{e.read(),e.change(
e.view)},document.documentElement.dataset.ready="1"}function vt(r){let e=r instanceof Error?r.message:String(r);k(Ce,h("\
p.verdict.bad",{role:"alert"},c("failed",typeof DecompressionStream>"u"?c("old"):e)))}async function yt(){let r=fe("lang\
uage")??navigator.language;ae(r.startsWith("zh")?"zh":"en"),Re(fe("theme")??"auto");let e=document.getElementById("data"),
{json:t,rest:s}=await be(e.textContent.trim());e.remove(),ze(new X(t,s))}yt().catch(vt);})();
