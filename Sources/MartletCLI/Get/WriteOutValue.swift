/// The value of a variable of `-w`.
enum WriteOutValue: Sendable {
    case text(String)
    case number(Int)
    /// Three digits.
    case status(Int)
    /// Seconds with six decimals.
    case seconds(Duration)
    /// Nothing to tell.
    case missing

    /// As curl prints it.
    var text: String {
        switch self {
        case .text(let text): return text
        case .number(let number): return String(number)
        case .status(let code):
            let digits = String(code)
            return String(repeating: "0", count: max(0, 3 - digits.count)) + digits
        case .seconds(let duration):
            let (seconds, attoseconds) = duration.components
            let micros = String(attoseconds / 1_000_000_000_000)
            return "\(seconds).\(String(repeating: "0", count: max(0, 6 - micros.count)))\(micros)"
        case .missing: return ""
        }
    }
}
