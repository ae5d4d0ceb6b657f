// What the page says, in each language, and how it writes numbers and times.
// Pure: nothing here knows the page.

const english = {
  title: "Deliveries now", skip: "Skip to the numbers", view: "View", narrow: "Show", language: "Language", theme: "Theme",
  auto: "As the system", light: "Light", dark: "Dark", token: "API token", useToken: "Use for this tab",
  live: "Live", change: "Change in 5 min", closed: "Closed, last {window}", flow: "Events a minute", byStatus: "Live by status",
  closedBy: "Closed, last {window}, by outcome", stuck: "Stuck", delivery: "Delivery", status: "Status", inStatus: "For", limit: "Limit",
  order: "Order", find: "Find", findLabel: "Delivery ID or order ID", findButton: "Find", exactUpTo: "Exact up to position",
  api: "API description", everything: "All deliveries", none: "(none)",
  connecting: "Connecting …", recovering: "Getting ready: the replica has not recovered yet", current: "Current",
  notCurrent: "Not current", atMost: "at most {age} old", lastEvent: "last event {time}", noEvents: "no event yet",
  old: "numbers are {age} old", behind: "{n} records behind", noConnection: "no connection", noAnswer: "no answer",
  unproved: "their age is not proved", shownFrom: "numbers of {time}", answeredBy: "answered by {replica}",
  needToken: "This service asks for a token.", wrongToken: "The token is not valid, or not any more.",
  noneStuck: "No delivery has been in a live status for longer than its limit.", mostStuck: "The {n} that wait longest.",
  noStuckLimits: "No status has a limit.", nothingFound: "Nothing found: not live, and not closed within the last {window}.",
  searchFailed: "Could not be asked: {why}.", timeline: "Timeline", since: "since {time}", closedAt: "closed {time}", after: "after",
  first: "First", again: "Last", attributes: "Details",
};

const korean = {
  title: "지금 배달 현황", skip: "숫자로 건너뛰기", view: "보기", narrow: "보기 범위", language: "언어", theme: "테마",
  auto: "시스템 설정", light: "밝게", dark: "어둡게", token: "API 토큰", useToken: "이 탭에서 사용",
  live: "진행 중", change: "최근 5분 변화", closed: "종료, 최근 {window}", flow: "분당 이벤트", byStatus: "상태별 진행 중",
  closedBy: "종료 결과, 최근 {window}", stuck: "지연", delivery: "배달", status: "상태", inStatus: "경과", limit: "기준",
  order: "주문", find: "찾기", findLabel: "배달 ID 또는 주문 ID", findButton: "찾기", exactUpTo: "정확한 위치:",
  api: "API 설명", everything: "전체 배달", none: "(없음)",
  connecting: "연결 중 …", recovering: "준비 중: 복제본이 아직 복구되지 않았습니다", current: "최신",
  notCurrent: "최신 아님", atMost: "최대 {age} 전", lastEvent: "마지막 이벤트 {time}", noEvents: "이벤트 없음",
  old: "{age} 전 숫자", behind: "{n}건 밀림", noConnection: "연결 없음", noAnswer: "응답 없음",
  unproved: "최신 여부가 확인되지 않음", shownFrom: "{time} 기준 숫자", answeredBy: "응답: {replica}",
  needToken: "이 서비스는 토큰이 필요합니다.", wrongToken: "토큰이 올바르지 않거나 만료되었습니다.",
  noneStuck: "기준보다 오래 머문 배달이 없습니다.", mostStuck: "가장 오래 기다린 {n}건.",
  noStuckLimits: "기준이 설정된 상태가 없습니다.", nothingFound: "없음: 진행 중이 아니며 최근 {window} 안에 종료되지도 않았습니다.",
  searchFailed: "조회할 수 없습니다: {why}.", timeline: "이력", since: "{time}부터", closedAt: "{time} 종료", after: "경과",
  first: "처음", again: "마지막", attributes: "정보",
};

const units = { en: { s: " s", min: " min", h: " h", d: " d" }, ko: { s: "초", min: "분", h: "시간", d: "일" } };

/** languages are those that the page speaks. */
export const languages = ["en", "ko"];

/** Words writes texts, numbers, ages and times in one language. */
export class Words {
  constructor(language) {
    this.language = languages.includes(language) ? language : "en";
    this.texts = this.language === "ko" ? korean : english;
    const locale = this.language === "ko" ? "ko-KR" : "en-GB";
    this.numbers = new Intl.NumberFormat(locale);
    this.changes = new Intl.NumberFormat(locale, { signDisplay: "exceptZero" });
    this.clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
    this.dated = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  }

  /** text fills the places of a text. */
  text(name, values = {}) {
    return this.texts[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
  }

  /** number writes a number; null, which is one that is not known yet, as a dash. */
  number(n) { return n === null ? "–" : this.numbers.format(n); }

  /** change writes a number with its sign; null as a dash. */
  change(n) { return n === null ? "–" : this.changes.format(n); }

  /** age writes seconds in at most two units, rounded down: "3.2 s", "41 min", "2 h 5 min". */
  age(seconds) {
    const unit = units[this.language];
    const s = Math.max(0, seconds);
    if (s < 9.95) return s.toFixed(1) + unit.s;
    if (s < 120) return Math.floor(s) + unit.s;
    if (s < 7200) return Math.floor(s / 60) + unit.min;
    if (s < 172800) return this.two(Math.floor(s / 3600) + unit.h, Math.floor(s % 3600 / 60), unit.min);
    return this.two(Math.floor(s / 86400) + unit.d, Math.floor(s % 86400 / 3600), unit.h);
  }

  two(first, rest, unit) { return rest === 0 ? first : first + " " + rest + unit; }

  /** span writes a configured duration: 86400 is "24 h". */
  span(seconds) {
    const unit = units[this.language];
    if (seconds >= 3600 && seconds % 3600 === 0) return seconds / 3600 + unit.h;
    if (seconds >= 60 && seconds % 60 === 0) return seconds / 60 + unit.min;
    return this.number(seconds) + unit.s;
  }

  /** time writes a time of the day, with the date unless it is the day of now. */
  time(when, now) {
    const same = when.getFullYear() === now.getFullYear() && when.getMonth() === now.getMonth() && when.getDate() === now.getDate();
    return (same ? this.clock : this.dated).format(when);
  }
}
