// The page's own words, in English and Chinese.
import { signal } from '@preact/signals';

const en = {
  title: 'Otograph', subtitle: 'Who spoke, what was said, what else was heard',
  skip: 'Skip to the content', language: '中文', theme: 'Light or dark', menu: 'Pages',
  navWork: 'Recordings', navAccount: 'Account', logout: 'Log out',
  loginTitle: 'Log in', loginHelp: 'Use an API key, or the user name and password that your administrator gave you. They stay in this browser tab and are forgotten when it closes.',
  byKey: 'API key', byUser: 'User name and password', key: 'API key', keyHint: 'It begins with asr_ and was shown when it was created.',
  username: 'User name', password: 'Password', login: 'Log in', loggingIn: 'Logging in …', keyShape: 'An API key begins with asr_ and has 44 characters.',
  newTitle: 'New transcript', drop: 'Drop recordings here', dropOr: 'or', choose: 'Choose files', dropHelp: 'Audio or video of almost any format, up to 5 hours each.',
  orUrl: 'Or paste a link to a recording', urlHint: 'One link per line; each must be reachable from the internet.', submitUrl: 'Fetch and transcribe', urlBad: 'This is not a link that begins with http:// or https://: {url}',
  options: 'What to do', asr: 'Write down what is said', diarize: 'Tell the speakers apart', diarizeNeeds: 'Needs the written text.', events: 'Note other sounds (music, applause, a telephone …)', nothing: 'Choose at least one thing to do.',
  spoken: 'Language spoken', auto: 'Find out automatically', quality: 'Accuracy', qAuto: 'Automatic: fast if possible', qWords: 'Careful: every word has a time', qFast: 'Fast: only sentences have times',
  speakers: 'Number of speakers', speakersAuto: 'Find out automatically', hotwords: 'Names and special words', hotwordsHint: 'Separated by commas',
  batch: 'No hurry: {percent} % off, ready within 24 hours', price: 'Costs about {amount} per hour of audio.', more: 'More options', beam: 'Search width', beamHint: 'Higher is more accurate and slower (1 to 20).', temperature: 'Sampling temperature', bestOf: 'Best of', bestOfHint: 'Only with a temperature above 0.', prompt: 'Opening text', promptHint: 'Text in the style that is wanted.',
  vad: 'Speech threshold', minSpeech: 'Shortest speech (ms)', minSilence: 'Shortest pause (ms)', pad: 'Margin around speech (ms)', noSpeech: 'No-speech threshold', minSpeakers: 'At least this many speakers', maxSpeakers: 'At most this many speakers', eventsThreshold: 'Sound threshold', eventClasses: 'Only these sounds', eventClassesHint: 'English names separated by commas; empty means all 521.', callback: 'Call this address when done', secret: 'Secret that signs the call', training: 'The recording may be used to train models',
  reset: 'Back to the defaults',
  queue: 'Your recordings', empty: 'Nothing here yet. Drop a recording above; it appears here while it is worked on, and stays here when it is done.', loading: 'Loading …',
  waiting: 'Waits for a free place', reading: 'Reading the file', sending: 'Sending, {percent} %', sent: 'Sent', processing: 'Working …', done: 'Ready', failed: 'Failed', abandoned: 'Given up', retrying: 'Failed for now, will be tried again',
  open: 'Open', remove: 'Delete', removeAsk: 'Delete “{name}” with its transcript?', dismiss: 'Dismiss', cancel: 'Cancel', again: 'Try again', older: 'Older', newer: 'Newer', pageOf: 'Page {page} of {pages}', filter: 'Show', all: 'All',
  back: 'All recordings', resultLoading: 'Loading the transcript …', details: 'Details', speakersFound: '{n} speakers', speakerFound: '1 speaker', charged: 'Charged {amount} for {minutes} min',
  play: 'Play', pause: 'Pause', backward: 'Back 5 seconds', forward: 'Forward 5 seconds', speed: 'Speed', zoomIn: 'Zoom in', zoomOut: 'Zoom out', fit: 'Whole recording', position: 'Position', follow: 'Follow along',
  noAudio: 'The recording itself is not stored with the transcript. Open your copy of it to listen along:', attach: 'Open the recording', otherAudio: 'This file is {a} long, the transcript is of a recording of {b}. It may be another recording.', cantPlay: 'This browser cannot play this file: {why}', onlyTimes: 'The band shows where there is speech.', drawing: 'Drawing the waveform, {percent} %', noWave: 'This browser cannot draw the waveform of this file; the band shows where there is speech.',
  timeline: 'Time line: {speakers} speakers, {events} sounds, {length}. The transcript and the list of sounds below hold the same as text.', unknownSpeaker: 'Unknown', rename: 'Rename {name}', renameHint: 'Click on a name to change it', name: 'Name', save: 'Save',
  transcript: 'Transcript', search: 'Search', searchCount: '{i} of {n}', searchNone: 'Not found', prev: 'Previous hit', next: 'Next hit', copy: 'Copy', copied: 'Copied', download: 'Download', unsure: 'Not sure: {percent} %', unsureShow: 'Mark doubtful words', playFrom: 'Play from {time}', noText: 'No speech was found in this recording.', textOff: 'The text was not asked for.',
  edit: 'Correct the text', editTitle: 'Correct the text at {time}', editHint: 'Enter keeps it, Escape leaves it as it was.', edited: 'Corrected here', editedNote: 'Names and corrections are kept in this tab and go into what you copy and download.',
  sounds: 'Other sounds', soundsNone: 'No other sounds were found.', keys: 'Keys: space plays and pauses, ← → move 5 seconds, , and . move by word, / searches.',
  account: 'Account', balance: 'Balance', held: 'Held for work in progress', packs: 'Resource packs', available: 'Available', tier: 'Tier', limits: 'Limits', concurrency: 'Recordings at once', active: 'In work now', batchWaiting: 'Waiting without hurry', rate: 'Requests per second', burst: 'Requests in one burst',
  prices: 'Prices per hour of audio', pStandard: 'Careful (standard)', pFast: 'Fast', pDiarize: 'Telling speakers apart', pEvents: 'Other sounds', pBatch: 'Without hurry', pBatchValue: '× {factor}', priceNote: 'Every recording counts in whole minutes, rounded up.',
  transactions: 'Transactions', noTransactions: 'No transactions yet.', when: 'When', kind: 'Kind', what: 'What', amount: 'Amount', after: 'Balance after', deduction: 'Charge', recharge: 'Payment', refund: 'Refund',
  tester: 'Try a callback', testerHelp: 'Makes a signed sample of the message that the service sends when a recording is done, as a command to run in a terminal. Your receiver should find the same signature.', testerMake: 'Make the command', testerHttps: 'Signing needs a page from https:// or from this machine.', testerUrl: 'Address of your receiver', 
  eUnauthorized: 'The key or login is not valid, or it has run out. Please log in again.', eBalance: 'The balance is too low for this. Ask your administrator for credit.', eForbidden: 'This belongs to another account.', eNotFound: 'This is not here (any more).', eConflict: 'It is still being worked on.', eConcurrency: 'All places are taken; it goes on when one is free.', eRate: 'Too many requests at once; please wait a moment.', eTooLarge: 'The file is too large to send ({size}); up to 149 MB can be sent. Put it on a web server and paste its link, or make it smaller (for example as MP3).', eInternal: 'Something went wrong in the service. It is not your fault; try again later.', eNetwork: 'The service cannot be reached. Is it running, is there a connection?', eInvalid: 'The service did not accept this: {message}', eTooSmall: 'The file is too small to be a recording (less than 1 KB).', said: 'The service says: {message}',
  bytes: '{n} MB', of: '{a} of {b}',
};
type Key = keyof typeof en;

const zh: Record<Key, string> = {
  title: 'Otograph', subtitle: '谁说了话，说了什么，还听到了什么',
  skip: '跳到正文', language: 'English', theme: '浅色或深色', menu: '页面',
  navWork: '录音', navAccount: '账户', logout: '退出',
  loginTitle: '登录', loginHelp: '请使用 API 密钥，或管理员给您的用户名和密码。它们只保存在当前浏览器标签页中，关闭后即被清除。',
  byKey: 'API 密钥', byUser: '用户名和密码', key: 'API 密钥', keyHint: '以 asr_ 开头，创建时显示过一次。',
  username: '用户名', password: '密码', login: '登录', loggingIn: '正在登录……', keyShape: 'API 密钥以 asr_ 开头，共 44 个字符。',
  newTitle: '新建转写', drop: '把录音拖到这里', dropOr: '或', choose: '选择文件', dropHelp: '几乎所有音频或视频格式，每个最长 5 小时。',
  orUrl: '或粘贴录音的链接', urlHint: '每行一个链接，必须能从互联网访问。', submitUrl: '获取并转写', urlBad: '这不是以 http:// 或 https:// 开头的链接：{url}',
  options: '要做什么', asr: '写下所说的内容', diarize: '区分说话人', diarizeNeeds: '需要先转写文字。', events: '记录其他声音（音乐、掌声、电话……）', nothing: '请至少选择一项。',
  spoken: '所说语言', auto: '自动识别', quality: '精度', qAuto: '自动：可能时用快速模式', qWords: '精细：每个词都有时间', qFast: '快速便宜：只有句子时间',
  speakers: '说话人数', speakersAuto: '自动判断', hotwords: '人名和专有词', hotwordsHint: '用逗号分隔',
  batch: '不着急：便宜 {percent}%，24 小时内完成', price: '每小时音频约 {amount}。', more: '更多选项', beam: '搜索宽度', beamHint: '越大越准确也越慢（1 到 20）。', temperature: '采样温度', bestOf: '择优数量', bestOfHint: '仅在温度大于 0 时有效。', prompt: '开头文字', promptHint: '给出希望的文字风格。',
  vad: '语音阈值', minSpeech: '最短语音（毫秒）', minSilence: '最短停顿（毫秒）', pad: '语音前后余量（毫秒）', noSpeech: '无语音阈值', minSpeakers: '最少说话人数', maxSpeakers: '最多说话人数', eventsThreshold: '声音阈值', eventClasses: '只要这些声音', eventClassesHint: '英文名称，用逗号分隔；留空表示全部 521 种。', callback: '完成后通知此地址', secret: '用于签名的密钥', training: '允许用此录音训练模型',
  reset: '恢复默认',
  queue: '您的录音', empty: '这里还没有内容。把录音拖到上面，处理时和完成后都会显示在这里。', loading: '正在加载……',
  waiting: '等待空位', reading: '正在读取文件', sending: '正在发送，{percent}%', sent: '已发送', processing: '正在处理……', done: '已完成', failed: '失败', abandoned: '已放弃', retrying: '暂时失败，将会重试',
  open: '打开', remove: '删除', removeAsk: '删除“{name}”及其转写结果？', dismiss: '移除', cancel: '取消', again: '重试', older: '更早', newer: '更新', pageOf: '第 {page} 页，共 {pages} 页', filter: '显示', all: '全部',
  back: '所有录音', resultLoading: '正在加载转写结果……', details: '详情', speakersFound: '{n} 位说话人', speakerFound: '1 位说话人', charged: '收费 {amount}，{minutes} 分钟',
  play: '播放', pause: '暂停', backward: '后退 5 秒', forward: '前进 5 秒', speed: '速度', zoomIn: '放大', zoomOut: '缩小', fit: '整段录音', position: '位置', follow: '跟随播放',
  noAudio: '录音本身没有随转写保存。打开您手头的文件即可边听边看：', attach: '打开录音', otherAudio: '此文件长 {a}，而转写的录音长 {b}，可能不是同一段录音。', cantPlay: '浏览器无法播放此文件：{why}', onlyTimes: '色带表示有语音的地方。', drawing: '正在绘制波形，{percent}%', noWave: '浏览器无法绘制此文件的波形，色带表示有语音的地方。',
  timeline: '时间轴：{speakers} 位说话人，{events} 个声音，{length}。下面的转写和声音列表有相同的文字内容。', unknownSpeaker: '未知', rename: '重命名 {name}', renameHint: '点击名字即可修改', name: '名字', save: '保存',
  transcript: '转写文字', search: '搜索', searchCount: '第 {i} 个，共 {n} 个', searchNone: '没有找到', prev: '上一个', next: '下一个', copy: '复制', copied: '已复制', download: '下载', unsure: '不确定：{percent}%', unsureShow: '标出不确定的词', playFrom: '从 {time} 播放', noText: '这段录音中没有发现语音。', textOff: '没有要求转写文字。',
  edit: '修改文字', editTitle: '修改 {time} 处的文字', editHint: '回车保存，Esc 放弃。', edited: '已在此修改', editedNote: '名字和修改保存在此标签页中，并会进入复制和下载的内容。',
  sounds: '其他声音', soundsNone: '没有发现其他声音。', keys: '按键：空格播放或暂停，← → 移动 5 秒，, 和 . 按词移动，/ 搜索。',
  account: '账户', balance: '余额', held: '进行中冻结', packs: '资源包', available: '可用', tier: '等级', limits: '限制', concurrency: '同时处理的录音', active: '正在处理', batchWaiting: '不着急排队中', rate: '每秒请求数', burst: '瞬时上限',
  prices: '每小时音频价格', pStandard: '精细（标准）', pFast: '快速', pDiarize: '区分说话人', pEvents: '其他声音', pBatch: '不着急', pBatchValue: '× {factor}', priceNote: '每段录音按整分钟计费，不足一分钟按一分钟。',
  transactions: '交易记录', noTransactions: '还没有交易。', when: '时间', kind: '类型', what: '说明', amount: '金额', after: '之后余额', deduction: '扣费', recharge: '充值', refund: '退款',
  tester: '试一试回调', testerHelp: '生成一条带签名的示例消息（与录音完成时服务所发送的相同），作为可在终端运行的命令。您的接收端应算出相同的签名。', testerMake: '生成命令', testerHttps: '签名需要通过 https:// 或在本机打开此页面。', testerUrl: '接收端地址',
  eUnauthorized: '密钥或登录无效，或已过期。请重新登录。', eBalance: '余额不足。请联系管理员充值。', eForbidden: '这属于另一个账户。', eNotFound: '这里没有（或已不在）。', eConflict: '仍在处理中。', eConcurrency: '所有位置都被占用，空出后会继续。', eRate: '请求太多，请稍候。', eTooLarge: '文件太大（{size}），最多可发送 149 MB。请放到网络服务器上并粘贴链接，或压缩它（例如转成 MP3）。', eInternal: '服务内部出了问题，不是您的错，请稍后再试。', eNetwork: '无法连接到服务。它在运行吗？网络正常吗？', eInvalid: '服务没有接受：{message}', eTooSmall: '文件太小，不像是录音（不足 1 KB）。', said: '服务返回：{message}',
  bytes: '{n} MB', of: '{a} / {b}',
};

export type Lang = 'en' | 'zh';
const stored = (() => { try { return localStorage.getItem('otograph.lang'); } catch { return null; } })();
export const lang = signal<Lang>(stored === 'en' || stored === 'zh' ? stored : /^zh\b/i.test(navigator.language) ? 'zh' : 'en');

/** setLang changes the language of the page and remembers it. */
export function setLang(l: Lang): void {
  lang.value = l;
  try { localStorage.setItem('otograph.lang', l); } catch { /* a file:// page may have no storage */ }
}

/** t gives a text in the page's language, its {names} filled in. */
export function t(key: Key, values?: Record<string, string | number>): string {
  const text = (lang.value === 'zh' ? zh : en)[key];
  return values ? text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole)) : text;
}
export type { Key as TextKey };

/** clock writes seconds as 1:02:03 or 2:03. */
export function clock(seconds: number, tenths = false): string {
  const s = Math.max(0, tenths ? Math.floor(seconds * 10) / 10 : Math.floor(seconds));
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60, rest = s - 3600 * h - 60 * m;
  const sec = (tenths ? rest.toFixed(1) : String(rest)).padStart(tenths ? 4 : 2, '0');
  return h ? `${h}:${String(m).padStart(2, '0')}:${sec}` : `${m}:${sec}`;
}

/** when writes a time stamp of the service in the reader's own way. */
export function when(stamp: string): string {
  const d = new Date(stamp);
  return isNaN(+d) ? stamp : d.toLocaleString(lang.value === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}

/** money writes an amount with two to four digits after the point. */
export const money = (n: number) => n.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 4, useGrouping: false });
