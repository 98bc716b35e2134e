// The page's own words, in English and Chinese.
import { signal } from '@preact/signals';

const en = {
  title: 'Otograph', subtitle: 'Who spoke, what was said, what else was heard',
  skip: 'Skip to the content', language: '中文', theme: 'Light or dark', menu: 'Pages',
  navWork: 'Recordings', navAccount: 'Account', logout: 'Log out',
  loginTitle: 'Log in', loginHelp: 'Use an API key, or the user name and password that your administrator gave you. They stay in this browser tab and are forgotten when it closes.',
  byKey: 'API key', byUser: 'User name and password', key: 'API key', keyHint: 'It begins with asr_. The first start of the service shows one; your administrator can create others.',
  username: 'User name', password: 'Password', login: 'Log in', loggingIn: 'Logging in …', keyShape: 'An API key begins with asr_ and has 44 characters.', keyWrong: 'The service does not know this key; it may have been revoked.', userWrong: 'The user name or the password is not right.', tooManyTries: 'Too many tries. Please wait a minute.',
  newTitle: 'New transcript', drop: 'Drop recordings here', dropOr: 'or', choose: 'Choose files', dropHelp: 'Audio or video of almost any format, up to 5 hours each.',
  orUrl: 'Or paste a link to a recording', urlHint: 'One link per line; each must be reachable from the internet.', submitUrl: 'Fetch and transcribe', urlBad: 'This is not a link that begins with http:// or https://: {url}',
  options: 'What to do', asr: 'Write down what is said', diarize: 'Tell the speakers apart', diarizeNeeds: 'Needs the written text.', events: 'Note other sounds (music, applause, a telephone …)', nothing: 'Choose at least one thing to do.',
  spoken: 'Language spoken', auto: 'Find out automatically', quality: 'Accuracy', qAuto: 'Automatic: fast if possible', qWords: 'Careful: every word has a time', qFast: 'Fast: only sentences have times',
  speakers: 'Number of speakers', speakersAuto: 'Find out automatically', hotwords: 'Names and special words', hotwordsHint: 'Separated by commas',
  batch: 'No hurry: {percent} % off, ready within 24 hours', price: 'Costs about {amount} per hour of audio.', more: 'More options',
  gText: 'The text', gSpeech: 'Finding speech', gVoices: 'Telling voices apart', gSounds: 'Other sounds', gAfter: 'When it is done', bounds: '{min} to {max}; normally {start}.', boundsOff: '{min} to {max}; normally empty.',
  times: 'Times', timesHint: 'Only the careful way of writing gives times to words.', timesWord: 'Of every word', timesSegment: 'Only of sentences', prompt: 'Opening text', promptHint: 'A few words in the style, spelling and language that you want.',
  beam: 'Search width', beamHint: 'Higher is more careful and slower.', temperature: 'Sampling temperature', temperatureHint: '0 always takes the likeliest word.', bestOf: 'Samples to choose from', bestOfHint: 'Only with a temperature above 0.', noSpeech: 'Drop what is hardly speech', noSpeechHint: 'Text goes where silence is surer than this; higher keeps more.',
  vad: 'How sure it must be speech', vadHint: 'Higher leaves out more noise, lower misses less.', minSpeech: 'Shortest speech (ms)', minSpeechHint: 'Anything shorter is left out.', minSilence: 'Shortest pause (ms)', minSilenceHint: 'Shorter pauses do not part sentences.', pad: 'Margin around speech (ms)', padHint: 'Kept before and after.',
  minSpeakers: 'At least this many speakers', maxSpeakers: 'At most this many speakers', speakersHint: 'Where the number is found out.', minSegment: 'Shortest voice sample (s)', minSegmentHint: 'Shorter pieces do not help to tell voices apart.', oneSpeaker: 'One speaker below', oneSpeakerHint: 'How well voices must part to count as several; higher finds fewer.',
  eventsThreshold: 'How sure it must be a sound', eventsThresholdHint: 'What is less sure is left out.', eventClasses: 'Only these sounds', eventClassesHint: 'English names with commas between; empty: all 521.',
  callback: 'Call this address when done', callbackHint: 'It gets a short message by POST.', secret: 'Secret that signs the call', secretHint: 'So that your program knows it is this service.', secretAlone: 'The secret needs an address to call.', training: 'The recording may be used to train models',
  outOfBounds: '“{name}” takes a number from {min} to {max}.', outOfBoundsWhole: '“{name}” takes a whole number from {min} to {max}.', speakersCrossed: 'There can’t be more speakers at least than at most.',
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
  sounds: 'Other sounds', soundsNone: 'No other sounds were found.', keys: 'Keys: space plays and pauses; ← and → move 5 seconds; comma and full stop move by a word; / searches.',
  account: 'Account', balance: 'Balance', held: 'Held for work in progress', packs: 'Resource packs', available: 'Available', tier: 'Tier', limits: 'Limits', concurrency: 'Recordings at once', active: 'In work now', batchWaiting: 'Waiting without hurry', rate: 'Requests per second', burst: 'Requests in one burst',
  prices: 'Prices per hour of audio', pStandard: 'Careful (standard)', pFast: 'Fast', pDiarize: 'Telling speakers apart', pEvents: 'Other sounds', pBatch: 'Without hurry', pBatchValue: '× {factor}', priceNote: 'Every recording counts in whole minutes, rounded up.', priceDate: 'Prices of {when}.',
  transactions: 'Transactions', noTransactions: 'No transactions yet.', when: 'When', kind: 'Kind', what: 'What', amount: 'Amount', after: 'Balance after', deduction: 'Charge', recharge: 'Payment', refund: 'Refund',
  tester: 'Try a callback', testerHelp: 'The service sends one signed message to your address, just as it does when a recording is finished. For this it gets a second of tone as a recording.',
  testerUrl: 'Address of your receiver', testerUrlHint: 'The service must be able to reach it: a public address, or one that your administrator has opened.', testerKind: 'Message', testerDone: 'Ready (costs {amount})', testerFailed: 'Failed (free)', testerSecretHint: 'Empty: the message is not signed.',
  testerSend: 'Send the sample', testerMake: 'Show as a command', testerHttps: 'Without https:// this page cannot work out the signature; the service signs all the same.',
  testerWorking: 'The sample is being worked on; the message follows at once …', testerSent: 'The message is on its way to {url}.', testerCost: 'It cost {amount}.', testerAgain: 'Where the answer is not 2xx, it is sent again after 1, 5 and 30 seconds. Whether it was taken stands in your receiver’s log.', testerCompare: 'These bytes and this signature must arrive:', testerUnsigned: 'These bytes must arrive, without a signature:', testerList: 'The sample stands among your recordings; it can be deleted there.', testerCommand: 'The same message, made up, for a terminal:', testerWaits: 'The sample could not be worked on and will be tried again: {message}',
  eUnauthorized: 'The key or login is not valid, or it has run out. Please log in again.', eBalance: 'The balance is too low for this. Ask your administrator for credit.', eForbidden: 'This belongs to another account.', eNotFound: 'This is not here (any more).', eConflict: 'It is still being worked on.', eConcurrency: 'All places are taken; it goes on when one is free.', eRate: 'Too many requests at once; please wait a moment.', eTooLarge: 'The file is too large to send ({size}); up to 149 MB can be sent. Put it on a web server and paste its link, or make it smaller (for example as MP3).', ePayload: 'This is too large for the service, or for a proxy in front of it. Put the recording on a web server and paste its link, or make it smaller (for example as MP3).', eInternal: 'Something went wrong in the service. It is not your fault; try again later.', eNetwork: 'The service cannot be reached. Is it running, is there a connection?', eInvalid: 'The service did not accept this: {message}', eTooSmall: 'The file is too small to be a recording (less than 1 KB).', said: 'The service says: {message}',
  bytes: '{n} MB', of: '{a} of {b}',
};
type Key = keyof typeof en;

const zh: Record<Key, string> = {
  title: 'Otograph', subtitle: '谁说了话，说了什么，还听到了什么',
  skip: '跳到正文', language: 'English', theme: '浅色或深色', menu: '页面',
  navWork: '录音', navAccount: '账户', logout: '退出',
  loginTitle: '登录', loginHelp: '请使用 API 密钥，或管理员给您的用户名和密码。它们只保存在当前浏览器标签页中，关闭后即被清除。',
  byKey: 'API 密钥', byUser: '用户名和密码', key: 'API 密钥', keyHint: '以 asr_ 开头。服务首次启动时会显示一个，管理员也可另外创建。',
  username: '用户名', password: '密码', login: '登录', loggingIn: '正在登录……', keyShape: 'API 密钥以 asr_ 开头，共 44 个字符。', keyWrong: '服务不认识这个密钥，它可能已被撤销。', userWrong: '用户名或密码不正确。', tooManyTries: '尝试次数太多，请等一分钟。',
  newTitle: '新建转写', drop: '把录音拖到这里', dropOr: '或', choose: '选择文件', dropHelp: '几乎所有音频或视频格式，每个最长 5 小时。',
  orUrl: '或粘贴录音的链接', urlHint: '每行一个链接，必须能从互联网访问。', submitUrl: '获取并转写', urlBad: '这不是以 http:// 或 https:// 开头的链接：{url}',
  options: '要做什么', asr: '写下所说的内容', diarize: '区分说话人', diarizeNeeds: '需要先转写文字。', events: '记录其他声音（音乐、掌声、电话……）', nothing: '请至少选择一项。',
  spoken: '所说语言', auto: '自动识别', quality: '精度', qAuto: '自动：可能时用快速模式', qWords: '精细：每个词都有时间', qFast: '快速便宜：只有句子时间',
  speakers: '说话人数', speakersAuto: '自动判断', hotwords: '人名和专有词', hotwordsHint: '用逗号分隔',
  batch: '不着急：便宜 {percent}%，24 小时内完成', price: '每小时音频约 {amount}。', more: '更多选项',
  gText: '文字', gSpeech: '查找语音', gVoices: '区分声音', gSounds: '其他声音', gAfter: '完成之后', bounds: '{min} 到 {max}，通常为 {start}。', boundsOff: '{min} 到 {max}，通常留空。',
  times: '时间', timesHint: '只有精细模式会给出每个词的时间。', timesWord: '每个词', timesSegment: '只有句子', prompt: '开头文字', promptHint: '用您希望的文风、写法和语言写几句话。',
  beam: '搜索宽度', beamHint: '越大越准确，也越慢。', temperature: '采样温度', temperatureHint: '0 总是取最可能的词。', bestOf: '择优数量', bestOfHint: '仅在温度大于 0 时有效。', noSpeech: '去掉不像语音的文字', noSpeechHint: '无人说话的可能性高于此值时去掉文字；越大保留越多。',
  vad: '判为语音的把握', vadHint: '越大越能排除噪声，越小越少遗漏。', minSpeech: '最短语音（毫秒）', minSpeechHint: '更短的会被忽略。', minSilence: '最短停顿（毫秒）', minSilenceHint: '更短的停顿不会断句。', pad: '语音前后余量（毫秒）', padHint: '前后各保留这么多。',
  minSpeakers: '最少说话人数', maxSpeakers: '最多说话人数', speakersHint: '自动判断人数时有效。', minSegment: '最短声音样本（秒）', minSegmentHint: '更短的片段无助于区分声音。', oneSpeaker: '低于此值算一人', oneSpeakerHint: '声音差别多大才算多人；越大人数越少。',
  eventsThreshold: '判为声音的把握', eventsThresholdHint: '把握更小的会被忽略。', eventClasses: '只要这些声音', eventClassesHint: '英文名称，用逗号分隔；留空表示全部 521 种。',
  callback: '完成后通知此地址', callbackHint: '以 POST 方式发送一条简短消息。', secret: '用于签名的密钥', secretHint: '让您的程序确认消息来自本服务。', secretAlone: '填写密钥时还需要通知地址。', training: '允许用此录音训练模型',
  outOfBounds: '“{name}”应为 {min} 到 {max} 的数字。', outOfBoundsWhole: '“{name}”应为 {min} 到 {max} 的整数。', speakersCrossed: '最少说话人数不能大于最多说话人数。',
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
  sounds: '其他声音', soundsNone: '没有发现其他声音。', keys: '按键：空格播放或暂停；← 和 → 移动 5 秒；逗号和句号按词移动；/ 搜索。',
  account: '账户', balance: '余额', held: '进行中冻结', packs: '资源包', available: '可用', tier: '等级', limits: '限制', concurrency: '同时处理的录音', active: '正在处理', batchWaiting: '不着急排队中', rate: '每秒请求数', burst: '瞬时上限',
  prices: '每小时音频价格', pStandard: '精细（标准）', pFast: '快速', pDiarize: '区分说话人', pEvents: '其他声音', pBatch: '不着急', pBatchValue: '× {factor}', priceNote: '每段录音按整分钟计费，不足一分钟按一分钟。', priceDate: '价格更新于 {when}。',
  transactions: '交易记录', noTransactions: '还没有交易。', when: '时间', kind: '类型', what: '说明', amount: '金额', after: '之后余额', deduction: '扣费', recharge: '充值', refund: '退款',
  tester: '试一试回调', testerHelp: '服务会向您的地址发送一条带签名的消息，与录音处理完成时完全相同。为此会提交一秒钟的纯音作为录音。',
  testerUrl: '接收端地址', testerUrlHint: '服务必须能访问它：公网地址，或管理员已开放的地址。', testerKind: '消息', testerDone: '已完成（费用 {amount}）', testerFailed: '失败（免费）', testerSecretHint: '留空则消息不签名。',
  testerSend: '发送示例', testerMake: '显示为命令', testerHttps: '没有 https://，此页面无法计算签名；服务仍会照常签名。',
  testerWorking: '正在处理示例，随后立即发送消息……', testerSent: '正在把消息发往 {url}。', testerCost: '费用 {amount}。', testerAgain: '若回答不是 2xx，将在 1、5、30 秒后重发。是否收到请看接收端的日志。', testerCompare: '应收到以下字节和签名：', testerUnsigned: '应收到以下字节，没有签名：', testerList: '示例会出现在您的录音列表中，可在那里删除。', testerCommand: '同样的消息（虚构内容），可在终端运行：', testerWaits: '示例暂时无法处理，将会重试：{message}',
  eUnauthorized: '密钥或登录无效，或已过期。请重新登录。', eBalance: '余额不足。请联系管理员充值。', eForbidden: '这属于另一个账户。', eNotFound: '这里没有（或已不在）。', eConflict: '仍在处理中。', eConcurrency: '所有位置都被占用，空出后会继续。', eRate: '请求太多，请稍候。', eTooLarge: '文件太大（{size}），最多可发送 149 MB。请放到网络服务器上并粘贴链接，或压缩它（例如转成 MP3）。', ePayload: '文件对服务或其前面的代理来说太大。请把录音放到网络服务器上并粘贴链接，或压缩它（例如转成 MP3）。', eInternal: '服务内部出了问题，不是您的错，请稍后再试。', eNetwork: '无法连接到服务。它在运行吗？网络正常吗？', eInvalid: '服务没有接受：{message}', eTooSmall: '文件太小，不像是录音（不足 1 KB）。', said: '服务返回：{message}',
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
