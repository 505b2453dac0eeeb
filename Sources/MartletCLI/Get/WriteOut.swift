import Martlet

/// curl's `-w`: a format with variables.
struct WriteOut: Sendable {
    /// A piece of the text, for standard output or standard error.
    struct Piece: Hashable, Sendable {
        var goesToStandardError: Bool
        var text = ""
    }

    private let report: TransferReport

    init(_ report: TransferReport) { self.report = report }

    static func printsVerification(_ format: String?) -> Bool {
        format.map { $0.contains("ssl_verify_result}") || $0.contains("%{json}") } ?? false
    }

    /// Fills in a format. Unknown variables are omitted, and returned in `unknown`.
    func text(_ format: String) -> (pieces: [Piece], unknown: [String]) {
        var pieces: [Piece] = []
        var piece = Piece(goesToStandardError: false)
        var unknown: [String] = []
        func begin(_ goesToStandardError: Bool) {
            pieces.append(piece)
            piece = Piece(goesToStandardError: goesToStandardError)
        }
        var rest = Substring(format)
        while let character = rest.popFirst() {
            switch character {
            case "\\": piece.text += WriteOut.escape(&rest)
            case "%" where rest.first == "%":
                rest = rest.dropFirst()
                piece.text += "%"
            case "%":
                switch WriteOut.variable(&rest) {
                case (true, let name)?: piece.text += field(name) ?? ""
                case (false, "stderr")?: begin(true)
                case (false, "stdout")?: begin(false)
                case (false, "onerror")?: if report.status == .success { return (pieces + [piece], unknown) }
                case (false, let name)?:
                    if let value = value(of: name) { piece.text += value.text } else { unknown.append(name) }
                case nil: piece.text += "%"
                }
            default: piece.text.append(character)
            }
        }
        return (pieces + [piece], unknown)
    }

    private static func escape(_ rest: inout Substring) -> String {
        switch rest.popFirst() {
        case "n": "\n"
        case "r": "\r"
        case "t": "\t"
        case let other: "\\" + (other.map { String($0) } ?? "")
        }
    }

    private static func variable(_ rest: inout Substring) -> (isHeader: Bool, name: String)? {
        let isHeader = rest.hasPrefix("header{")
        guard isHeader || rest.hasPrefix("{"), let close = rest.firstIndex(of: "}") else { return nil }
        let name = rest[rest.index(rest.startIndex, offsetBy: isHeader ? 7 : 1)..<close]
        rest = rest[rest.index(after: close)...]
        return (isHeader, String(name))
    }

    private func field(_ name: String) -> String? { report.head?.fields.firstValue(of: name) }

    /// The value of a variable; zero for an unknown name that begins with `time_`, `nil` for other unknown names.
    private func value(of name: String) -> WriteOutValue? {
        switch name {
        case "json": return .text(JSONMembers(WriteOut.variables.map { ($0, $1(self).json) }).jsonLine)
        case "header_json": return .text(headerJSON)
        default:
            let variable = WriteOut.variables.first { $0.key == name }
            return variable?.value(self) ?? (name.hasPrefix("time_") ? .seconds(.zero) : nil)
        }
    }

    /// The fields by lower-case name, each with all its values, in order.
    private var headerJSON: String {
        guard let fields = report.head?.fields else { return "{}" }
        var names: [String] = []
        for index in fields.indices {
            let name = fields.nameString(at: index).lowercased()
            if !names.contains(name) { names.append(name) }
        }
        let lines = names.map { "\($0.jsonLine):\(Array(fields.values(of: $0)).jsonLine)" }
        return "{\(lines.joined(separator: ",\n"))\n}"
    }

    /// The variables of `-w`, in curl's order.
    private static let variables: KeyValuePairs<String, @Sendable (WriteOut) -> WriteOutValue> = [
        "content_type": { .text($0.field("content-type")) },
        "errormsg": { .text($0.report.message.isEmpty ? nil : $0.report.message) },
        "exitcode": { .number(Int($0.report.status.code)) }, "filename_effective": { .text($0.report.file) },
        // Only for FTP.
        "ftp_entry_path": { _ in .text(nil) }, "http_code": { .status($0.report.effectiveStatus) },
        "http_connect": { .status($0.report.tunnelHead?.status ?? 0) },
        "http_version": { .text($0.report.head.map { String("\($0.version.text)".dropFirst(5)) } ?? "0") },
        "local_ip": { .text(WriteOut.address($0.connection?.localAddress).host) },
        "local_port": { .number(WriteOut.address($0.connection?.localAddress).port) },
        "method": { .text($0.report.method) }, "num_connects": { .number($0.connects) },
        "num_headers": { .number(($0.report.head ?? $0.report.tunnelHead)?.fields.count ?? 0) },
        "num_redirects": { .number($0.redirects.count) },
        "proxy_ssl_verify_result": { .number($0.verification($0.report.proxyVerifyResult, of: .http)) },
        "redirect_url": { .text($0.redirection) }, "referer": { .text($0.report.plan.request.headerFields[.referer]) },
        "remote_ip": { .text(WriteOut.address($0.connection?.remoteAddress).host) },
        "remote_port": { .number(WriteOut.address($0.connection?.remoteAddress).port) },
        "response_code": { .status($0.report.effectiveStatus) }, "scheme": { .text($0.scheme) },
        "size_download": { .number($0.received) }, "size_header": { .number($0.report.headByteCount) },
        "size_request": { .number($0.report.metrics == nil ? 0 : $0.report.sentHeadByteCount) },
        "size_upload": { .number($0.uploaded) }, "speed_download": { .number($0.perSecond($0.received)) },
        "speed_upload": { .number($0.perSecond($0.uploaded)) },
        "ssl_verify_result": { .number($0.verification($0.report.verifyResult, of: .https)) },
        "time_appconnect": { .seconds($0.times.secured) }, "time_connect": { .seconds($0.times.connected) },
        "time_namelookup": { .seconds($0.times.named) }, "time_pretransfer": { .seconds($0.times.ready) },
        "time_redirect": { .seconds($0.redirects.last?.ended ?? .zero) },
        "time_starttransfer": { .seconds($0.report.metrics?.firstByte ?? .zero) },
        "time_total": { .seconds($0.report.elapsed) }, "url": { .text($0.report.plan.givenURL) },
        "url_effective": { .text($0.report.url.withoutUserInfo.absoluteString) },
        "urlnum": { .number($0.report.plan.number) },
    ]

    private var connection: ConnectionInformation? { report.metrics?.connection }
    private var received: Int { Int(clamping: report.metrics?.receivedBodyByteCount ?? 0) }
    private var uploaded: Int { Int(clamping: report.uploadedByteCount) }
    private var redirects: [HTTPHop] { report.steps.map(\.hop).filter { $0.reason == .redirect } }

    private var scheme: String? {
        let wasTried = report.metrics != nil || report.status == .connectFailed
        return wasTried ? report.url.scheme.rawValue.uppercased() : nil
    }

    /// The code of the error for which the chain was rejected, or was accepted only because of `-k`; 0 for none. A
    /// reused connection has no chain.
    private func verification(_ code: Int, of scheme: HTTPURL.Scheme) -> Int {
        guard code == 0, report.url.scheme == scheme, report.metrics?.isConnectionReused == false,
            let accepted = connection?.tls?.acceptedError
        else { return code }
        return TLSError(accepted).verificationCode ?? 0
    }

    private var connects: Int {
        let metrics = report.steps.compactMap(\.exchange?.metrics) + [report.metrics].compactMap { $0 }
        return metrics.count { $0.connection != nil && !$0.isConnectionReused }
    }

    private func perSecond(_ bytes: Int) -> Int {
        let seconds = report.elapsed / .seconds(1)
        return seconds > 0 ? Int(Double(bytes) / seconds) : 0
    }

    /// The times of the last request's phases, counted from the start of the transfer's first request.
    private var times: (named: Duration, connected: Duration, secured: Duration, ready: Duration) {
        let metrics = report.metrics ?? HTTPMetrics()
        let begin = report.steps.last.map { $0.hop.ended + $0.hop.delay } ?? .zero
        let named = metrics.dns.map { begin + $0 } ?? .zero
        let connected = metrics.connect.map { max(named, begin) + $0 } ?? .zero
        let secured = metrics.tls.map { connected + $0 } ?? .zero
        return (named, connected, secured, metrics.connection == nil ? .zero : begin + metrics.wait)
    }

    private var redirection: String? {
        guard let head = report.head, (300...399).contains(head.status), let location = field("location") else {
            return nil
        }
        return (try? report.url.resolving(location))?.absoluteString
    }

    /// The parts of `127.0.0.1:80` or `[::1]:80`.
    private static func address(_ text: String?) -> (host: String, port: Int) {
        guard let text, let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]) else {
            return ("", 0)
        }
        let host = text[..<colon]
        return (host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : String(host), port)
    }
}

enum WriteOutValue: JSONRepresentable, Sendable {
    /// A text; `nil` if the value is missing.
    case text(String?)
    case number(Int)
    /// A status code, printed as three digits.
    case status(Int)
    /// Seconds with six decimals.
    case seconds(Duration)

    var text: String {
        switch self {
        case .text(let text): return text ?? ""
        case .number(let number): return String(number)
        case .status(let code):
            let digits = String(code)
            return String(repeating: "0", count: max(0, 3 - digits.count)) + digits
        case .seconds(let duration): return duration.secondsText
        }
    }

    var json: JSONValue {
        switch self {
        case .text(let text): text.json
        case .number(let number), .status(let number): number.json
        case .seconds(let duration): duration.json
        }
    }
}

extension TLSError {
    /// OpenSSL's number for the rejection of a chain, the most frequent one if several fit; `nil` for other errors.
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
