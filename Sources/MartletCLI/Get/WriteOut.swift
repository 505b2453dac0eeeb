import Martlet
import MartletWire

/// curl's `-w`: a text with variables.
struct WriteOut: Sendable {
    /// Where a piece of it goes.
    struct Piece: Hashable, Sendable {
        var goesToStandardError: Bool
        var text: String
    }

    private let report: TransferReport

    /// For a transfer that is over.
    init(_ report: TransferReport) { self.report = report }

    /// Whether a format asks what verifying the certificates gave.
    static func tellsVerification(_ format: String?) -> Bool {
        format.map { $0.contains("ssl_verify_result}") || $0.contains("%{json}") } ?? false
    }

    /// Fills a format in. Unknown variables are left out, and named in the second part.
    func text(_ format: String) -> (pieces: [Piece], unknown: [String]) {
        var pieces = [Piece(goesToStandardError: false, text: "")]
        var unknown: [String] = []
        var rest = Substring(format)
        while let character = rest.popFirst() {
            switch character {
            case "\\": pieces[pieces.count - 1].text += WriteOut.escape(&rest)
            case "%" where rest.first == "%":
                rest = rest.dropFirst()
                pieces[pieces.count - 1].text += "%"
            case "%":
                guard let (kind, name) = WriteOut.variable(&rest) else {
                    pieces[pieces.count - 1].text += "%"
                    continue
                }
                switch (kind, name) {
                case (.header, _): pieces[pieces.count - 1].text += header(name)
                case (.variable, "stderr"): pieces.append(Piece(goesToStandardError: true, text: ""))
                case (.variable, "stdout"): pieces.append(Piece(goesToStandardError: false, text: ""))
                case (.variable, "onerror"): if report.status == .success { return (pieces, unknown) }
                case (.variable, _):
                    if let value = value(of: name) {
                        pieces[pieces.count - 1].text += value.text
                    } else {
                        unknown.append(name)
                    }
                }
            default: pieces[pieces.count - 1].text.append(character)
            }
        }
        return (pieces, unknown)
    }

    private enum Kind { case variable, header }

    private static func escape(_ rest: inout Substring) -> String {
        guard let next = rest.popFirst() else { return "\\" }
        switch next {
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        default: return "\\\(next)"
        }
    }

    private static func variable(_ rest: inout Substring) -> (Kind, String)? {
        let isHeader = rest.hasPrefix("header{")
        guard isHeader || rest.hasPrefix("{"), let close = rest.firstIndex(of: "}") else { return nil }
        let name = rest[rest.index(rest.startIndex, offsetBy: isHeader ? 7 : 1)..<close]
        rest = rest[rest.index(after: close)...]
        return (isHeader ? .header : .variable, String(name))
    }

    private func header(_ name: String) -> String { report.head?.fields.firstValue(of: name) ?? "" }

    /// The value of a variable; `nil` when there is none of that name.
    private func value(of name: String) -> WriteOutValue? {
        switch name {
        case "json": return .text(JSONLine.text(.members(WriteOut.names.map { ($0, json($0)) })))
        case "header_json": return .text(headerJSON)
        default: return WriteOutValues(report: report).value(of: name)
        }
    }

    private func json(_ name: String) -> JSONValue {
        switch WriteOutValues(report: report).value(of: name) {
        case .text(let text): .string(text)
        case .number(let number): .number(String(number))
        case .status(let code): .number(String(code))
        case .seconds(let seconds): .number(WriteOutValue.seconds(seconds).text)
        case .missing, nil: .null
        }
    }

    /// The variables of `%{json}`, in curl's order.
    static let names = [
        "content_type", "errormsg", "exitcode", "filename_effective", "ftp_entry_path", "http_code",
        "http_connect", "http_version", "local_ip", "local_port", "method", "num_connects", "num_headers",
        "num_redirects", "proxy_ssl_verify_result", "redirect_url", "referer", "remote_ip", "remote_port",
        "response_code", "scheme", "size_download", "size_header", "size_request", "size_upload",
        "speed_download", "speed_upload", "ssl_verify_result", "time_appconnect", "time_connect",
        "time_namelookup", "time_pretransfer", "time_redirect", "time_starttransfer", "time_total", "url",
        "url_effective", "urlnum",
    ]

    /// The fields by lower-case name, each with all its values, in the order they came.
    private var headerJSON: String {
        guard let fields = report.head?.fields else { return "{}" }
        var names: [String] = []
        for index in fields.indices {
            let name = fields.nameString(at: index).lowercased()
            if !names.contains(name) { names.append(name) }
        }
        let lines = names.map { name in
            let values = fields.values(of: name).map { JSONLine.text(.string($0)) }
            return "\(JSONLine.text(.string(name))):[\(values.joined(separator: ","))]"
        }
        return "{\(lines.joined(separator: ",\n"))\n}"
    }
}

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

extension TLSError {
    /// OpenSSL's number for why a chain was refused, as `-w` has it; `nil` where the chain was good or none came.
    ///
    /// Of the numbers for an authority that is not trusted it is the most frequent.
    var verificationCode: Int? {
        switch kind {
        case .nameMismatch: 1
        case .notYetValid: 9
        case .expired: 10
        case .selfSigned: 18
        case .unknownAuthority, .noTrustRoots: 20
        case .revoked: 23
        case .revocationUnknown: 3
        case .wrongPurpose: 26
        case .weakKey: 66
        case .weakSignature: 68
        case .badCertificate(_, let code): code
        default: nil
        }
    }
}
