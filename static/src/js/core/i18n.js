// Sentences the browser code says by itself. Everything else comes from the server through gettext.
const en = {
  "error.network": "The server cannot be reached. What you typed is kept; try again in a moment.",
  "error.server": "Something went wrong on our side. What you typed is kept.",
  "error.forbidden": "You are not allowed to do this here.",
  "error.missing": "This is no longer here. Reload to see the current state.",
  "error.conflict": "Someone changed this in the meantime. Reload to see their version.",
  "error.large": "That is larger than this server accepts.",
  "error.busy": "Too many requests at once. Wait a moment, then try again.",
  "error.invalid": "Please check what you entered.",
  "error.details": "Error {status}",
  "copy.done": "Copied",
  "copy.failed": "Copying was refused by the browser. Select the text and copy it by hand.",
  "draft.restored": "We put back what you had typed.",
  "draft.discard": "Discard",
  "form.leave": "You have unsaved changes.",
  "select.page": "{count} selected",
  "toast.dismiss": "Dismiss",
  "toast.undo": "Undo",
  "upload.waiting": "Waiting",
  "upload.sending": "{percent}%",
  "upload.stored": "Uploaded, being processed",
  "upload.duplicate": "Already in this knowledge base",
  "upload.cancelled": "Cancelled",
  "upload.signedOut": "You have been signed out. Sign in, then retry.",
  "upload.empty": "This file is empty.",
  "upload.type": "Files of type {type} cannot be read. Accepted: {accepted}.",
  "upload.size": "Larger than the limit of {limit}.",
  "upload.network": "The connection broke. Retry when you are online.",
  "upload.timeout": "The server took too long to answer.",
  "upload.active": "Uploading {done} of {total}",
  "upload.finished": "{done} of {total} uploaded",
  "upload.leave": "Files are still being uploaded.",
  "upload.unreadable": "The browser could not read this file.",
  "pdf.page": "Page {page}",
  "pdf.failed": "This PDF cannot be shown here. Download the original to read it.",
  "pdf.locked": "This PDF is protected by a password, so it cannot be shown here.",
  "ask.all": "All knowledge bases",
  "ask.done": "The answer is complete",
  "poll.failed": "No news from the server. Trying again.",
  "keys.page": "On this page",
};

const zh = {
  "error.network": "连不上服务器。已填写的内容都在，稍后再试。",
  "error.server": "服务器出了问题，已填写的内容都在。",
  "error.forbidden": "你在这里没有这项操作的权限。",
  "error.missing": "内容已经不在了，刷新页面看最新情况。",
  "error.conflict": "刚刚有人改过，刷新页面看最新版本。",
  "error.large": "超过了服务器允许的大小。",
  "error.busy": "请求太频繁，稍等片刻再试。",
  "error.invalid": "请检查填写的内容。",
  "error.details": "错误 {status}",
  "copy.done": "已复制",
  "copy.failed": "浏览器不允许复制，请手动选中后复制。",
  "draft.restored": "已恢复你上次没提交的内容。",
  "draft.discard": "不要了",
  "form.leave": "有内容还没保存。",
  "select.page": "已选 {count} 项",
  "toast.dismiss": "关闭",
  "toast.undo": "撤销",
  "upload.waiting": "等待中",
  "upload.sending": "{percent}%",
  "upload.stored": "已上传，正在处理",
  "upload.duplicate": "这个知识库里已经有了",
  "upload.cancelled": "已取消",
  "upload.signedOut": "登录已失效，重新登录后点重试。",
  "upload.empty": "文件是空的。",
  "upload.type": "暂不支持 {type} 文件。可上传：{accepted}。",
  "upload.size": "超过 {limit} 的上限。",
  "upload.network": "网络断了，恢复后点重试。",
  "upload.timeout": "服务器太久没有回应。",
  "upload.active": "正在上传，第 {done} 个，共 {total} 个",
  "upload.finished": "已上传 {done} 个，共 {total} 个",
  "upload.leave": "还有文件没传完。",
  "upload.unreadable": "浏览器读不了这个文件。",
  "pdf.page": "第 {page} 页",
  "pdf.failed": "这份 PDF 无法在这里显示，请下载原件阅读。",
  "pdf.locked": "这份 PDF 设了密码，无法在这里显示。",
  "ask.all": "全部知识库",
  "ask.done": "回答完毕",
  "poll.failed": "暂时没有收到服务器的消息，正在重试。",
  "keys.page": "本页",
};

const words = document.documentElement.lang.startsWith("zh") ? zh : en;

/** The sentence for `key` in the page's language, with {names} filled in. */
export function say(key, values = {}) {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

export function sizeText(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
