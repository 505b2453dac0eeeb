import FoundationEssentials
import Glibc
import HTTPTypes
import MartletWire

/// The condition of `-z`: newer or older than an instant.
struct TimeCondition: Hashable, Sendable {
    /// How the response is compared with the date.
    enum Relation: Hashable, Sendable {
        /// It must be newer.
        case modifiedSince
        /// It must be older.
        case unmodifiedSince
        /// As curl's `=`: the date is sent as that of the request's own.
        case lastModified

        /// The field that asks for it.
        var field: HTTPField.Name {
            switch self {
            case .modifiedSince: .ifModifiedSince
            case .unmodifiedSince: .ifUnmodifiedSince
            case .lastModified: .lastModified
            }
        }
    }

    let relation: Relation
    let date: HTTPDate

    /// Reads `DATE`, `-DATE`, or the name of a file whose time counts, as curl does in this order; `nil` for what is
    /// neither.
    init?(_ text: String, now: HTTPDate) {
        var rest = text
        switch text.unicodeScalars.first {
        case "-": relation = .unmodifiedSince
        case "=": relation = .lastModified
        default: relation = .modifiedSince
        }
        if let mark = text.unicodeScalars.first, ["-", "=", "+"].contains(mark) {
            rest = text.rest(behind: text.startIndex)
        }
        guard let date = DateText.read(rest, now: now) ?? TimeCondition.time(ofFile: rest) else { return nil }
        self.date = date
    }

    /// The present.
    static var present: HTTPDate {
        HTTPDate(secondsSinceEpoch: Int64(Date().timeIntervalSince1970.rounded(.down)))
    }

    /// Whether a response is as it is wanted. One that does not tell its age is.
    func isMet(by head: ResponseHead) -> Bool {
        guard let text = head.fields.firstValue(of: "last-modified"), let modified = HTTPDate(text) else {
            return true
        }
        switch relation {
        case .modifiedSince: return modified > date
        case .unmodifiedSince: return modified < date
        case .lastModified: return true
        }
    }

    private static func time(ofFile name: String) -> HTTPDate? {
        var status = stat()
        guard !name.isEmpty, unsafe stat(name, &status) == 0 else { return nil }
        return HTTPDate(secondsSinceEpoch: Int64(status.st_mtim.tv_sec))
    }
}
