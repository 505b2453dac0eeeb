import FoundationEssentials
import Martlet

/// Reads the values of options.
enum OptionValues {
    /// Seconds, with a fraction if wanted; 0 is "no limit".
    static func seconds(_ text: String, _ option: String) throws(UsageError) -> Duration? {
        guard let number = Double(text), number.isFinite, number >= 0, number < 1e9 else {
            throw UsageError("option \(option): “\(text)” is not a number of seconds")
        }
        return number == 0 ? nil : .milliseconds(Int64((number * 1000).rounded(.up)))
    }

    /// A length of time: `90s`, `30m`, `12h`, `7d`, or seconds without a letter; more than none, at most 36,500 days.
    static func length(_ text: String, _ option: String) throws(UsageError) -> Duration {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = text.last.flatMap { units[$0] }
        let digits = unit == nil ? text[...] : text.dropLast()
        guard let number = Int64(digits), number > 0, number <= 36_500 * 86_400 / (unit ?? 1) else {
            throw UsageError(
                "option \(option): “\(text)” is not a length of time, such as 7d, 12h, 30m or 90s")
        }
        return .seconds(number * (unit ?? 1))
    }

    /// A plain number.
    static func number(_ text: String, _ option: String) throws(UsageError) -> Int {
        guard let number = Int(text), number >= 0 else {
            throw UsageError("option \(option): “\(text)” is not a number")
        }
        return number
    }

    /// Reads a plain number within bounds.
    static func number(
        in range: ClosedRange<Int>
    ) -> @Sendable (_ text: String, _ option: String) throws(UsageError) -> Int {
        { (text, option) throws(UsageError) in
            guard let number = Int(text), range.contains(number) else {
                throw UsageError(
                    "option \(option): “\(text)” is not a number from \(range.lowerBound) to \(range.upperBound)"
                )
            }
            return number
        }
    }

    /// A folder, which has a name.
    static func folder(_ text: String, _ option: String) throws(UsageError) -> String {
        guard !text.isEmpty else { throw UsageError("option \(option): takes a folder") }
        return text
    }

    /// Bytes: `1000`, `10K`, `2M`, `1G` (of 1,024 each); 0 is "no limit".
    static func size(_ text: String, _ option: String) throws(UsageError) -> Int? {
        let units: [Character: Int] = ["k": 1 << 10, "m": 1 << 20, "g": 1 << 30]
        let unit = text.last.flatMap { units[Character($0.lowercased())] }
        let digits = unit == nil ? text[...] : text.dropLast()
        guard let number = Int(digits), number >= 0 else {
            throw UsageError("option \(option): “\(text)” is not a number of bytes")
        }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !overflow else { throw UsageError("option \(option): “\(text)” is too large") }
        return bytes == 0 ? nil : bytes
    }

    /// A header line, or a file of them.
    static func header(_ group: inout OptionGroup, _ line: String) throws(UsageError) {
        guard let contents = try InputFile.contents(behindAtOf: line) else {
            group.transfer.headerLines.append(line)
            return
        }
        let text = String(decoding: contents, as: UTF8.self)
        // As in curl: what is a remark, or blank, is no field.
        for line in text.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
            guard line.contains(where: { $0 != " " && $0 != "\t" }) else { continue }
            group.transfer.headerLines.append(String(line))
        }
    }

    /// A date or a file's time; what is neither is no condition, of which users are told.
    static func timeCondition(_ group: inout OptionGroup, _ text: String) {
        group.transfer.timeCondition = TimeCondition(text, now: TimeCondition.present)
        guard group.transfer.timeCondition == nil else { return }
        group.global.warnings.append(
            "option -z: “\(text)” is neither a date nor a file: the request has no condition")
    }

    /// `HOST:PORT:ADDRESS[,ADDRESS]…`, with a `+` before it if wanted; `-HOST:PORT` takes it back.
    static func resolve(_ group: inout OptionGroup, _ text: String) throws(UsageError) {
        let isRemoval = text.hasPrefix("-")
        let rest = text.hasPrefix("+") || isRemoval ? text.dropFirst() : text[...]
        let parts = rest.split(separator: ":", maxSplits: isRemoval ? 1 : 2, omittingEmptySubsequences: false)
        guard parts.count == (isRemoval ? 2 : 3), !parts[0].isEmpty, let port = Int(parts[1]),
            (1...65535).contains(port)
        else { throw UsageError("option --resolve: “\(text)” is not HOST:PORT:ADDRESS") }
        let endpoint = Endpoint(host: parts[0].lowercased(), port: port)
        if isRemoval {
            group.transfer.overrides[endpoint] = nil
            return
        }
        var addresses: [SocketAddress] = []
        for part in parts[2].split(separator: ",") {
            let literal = part.hasPrefix("[") && part.hasSuffix("]") ? part.dropFirst().dropLast() : part
            guard let address = SocketAddress(literal: String(literal), port: port) else {
                throw UsageError("option --resolve: “\(part)” is not an IP address")
            }
            addresses.append(address)
        }
        guard !addresses.isEmpty else { throw UsageError("option --resolve: “\(text)” names no address") }
        group.transfer.overrides[endpoint] = addresses
    }

    /// `HOST1:PORT1:HOST2:PORT2`, where each part may be empty and an IPv6 address stands in brackets.
    static func connectTo(_ text: String) throws(UsageError) -> ConnectRedirection {
        let error = UsageError("option --connect-to: “\(text)” is not HOST1:PORT1:HOST2:PORT2")
        var parts = [""]
        var isBracketed = false
        for character in text {
            switch character {
            case "[" where !isBracketed: isBracketed = true
            case "]" where isBracketed: isBracketed = false
            case ":" where !isBracketed: parts.append("")
            default: parts[parts.count - 1].append(character)
            }
        }
        guard parts.count == 4, !isBracketed else { throw error }
        var ports: [Int?] = []
        for text in [parts[1], parts[3]] {
            guard text.isEmpty || Int(text).map({ (1...65535).contains($0) }) == true else { throw error }
            ports.append(Int(text))
        }
        return ConnectRedirection(
            fromHost: parts[0].isEmpty ? nil : parts[0].lowercased(), fromPort: ports[0],
            toHost: parts[2].isEmpty ? nil : parts[2].lowercased(), toPort: ports[1])
    }

    /// The newest TLS.
    static func newestTLS(_ text: String, _ option: String) throws(UsageError) -> TLSVersion {
        switch text {
        case "1.2": return .tls12
        case "1.3", "default": return .tls13
        default: throw UsageError("option \(option): TLS “\(text)” is not supported; 1.2 and 1.3 are")
        }
    }

    /// The form of a client certificate, in capitals.
    static func certificateType(_ text: String) throws(UsageError) -> String {
        let type = text.uppercased()
        guard ["PEM", "DER", "P12"].contains(type) else {
            throw UsageError("option --cert-type: “\(text)” is not supported; PEM, DER and P12 are")
        }
        return type
    }

    /// The form of a private key, which shows by itself.
    static func keyType(_ text: String) throws(UsageError) {
        guard ["PEM", "DER"].contains(text.uppercased()) else {
            throw UsageError("option --key-type: “\(text)” is not supported; PEM and DER are")
        }
    }

    /// Pins as curl takes them: hashes with semicolons between them, or a file with a key.
    static func pins(_ text: String) throws(UsageError) -> [PublicKeyPin] {
        var pins: [PublicKeyPin] = []
        do throws(TLSError) {
            guard text.hasPrefix("sha256//") else { return [try PublicKeyPin(of: .file(text))] }
            for part in text.split(separator: ";") { pins.append(try PublicKeyPin(String(part))) }
        } catch {
            throw UsageError(
                "option --pinnedpubkey: \(error)", status: text.hasPrefix("sha256//") ? .usage : .pinMismatch)
        }
        return pins
    }
}

/// Lists of schemes as curl's `--proto` and `--proto-redir` write them.
///
/// Elements between commas, from left to right: `=name` for that alone, `+name` or `name` for that as well, `-name` for not
/// that. `all` is all schemes.
enum SchemeList {
    /// Applies a list to what was allowed before.
    /// - Parameter place: What the message names where an element cannot be read.
    static func applying(
        _ text: String, to schemes: Set<HTTPURL.Scheme>, _ place: String
    ) throws(UsageError) -> Set<HTTPURL.Scheme> {
        var schemes = schemes
        for element in text.split(separator: ",") {
            let sign = element.first.flatMap { "=+-".contains($0) ? $0 : nil }
            let name = (sign == nil ? element : element.dropFirst()).lowercased()
            let named: Set<HTTPURL.Scheme>
            if name == "all" {
                named = Set(HTTPURL.Scheme.allCases)
            } else if let scheme = HTTPURL.Scheme(rawValue: name) {
                named = [scheme]
            } else if others.contains(name) {
                // Known to curl, and never followed here: nothing to add, and nothing to take away.
                named = []
            } else {
                throw UsageError("\(place): “\(element)” is no scheme with =, + or - before it")
            }
            switch sign {
            case "=": schemes = named
            case "-": schemes.subtract(named)
            default: schemes.formUnion(named)
            }
        }
        return schemes
    }

    /// Schemes that curl may know besides.
    private static let others: Set<String> = [
        "dict", "file", "ftp", "ftps", "gopher", "gophers", "imap", "imaps", "ldap", "ldaps", "mqtt", "pop3",
        "pop3s", "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts", "rtsp", "scp", "sftp", "smb", "smbs",
        "smtp", "smtps", "telnet", "tftp", "ws", "wss",
    ]
}

/// Characters that mean something in the value of an option, looked for by themselves: a combining mark behind one makes a
/// character of the two to `String`, which would not find the first.
extension StringProtocol {
    /// Where a mark stands first.
    func first(_ marks: Unicode.Scalar...) -> Index? { unicodeScalars.firstIndex { marks.contains($0) } }

    /// What is behind the mark at a place.
    func rest(behind mark: Index) -> String { String(self[unicodeScalars.index(after: mark)...]) }

    /// Whether it begins with some marks.
    func begins(with marks: String) -> Bool { utf8.starts(with: marks.utf8) }

    /// Whether it ends with a text.
    func ends(with text: String) -> Bool { utf8.reversed().starts(with: text.utf8.reversed()) }

    /// Whether some marks stand in it.
    func holds(_ marks: String) -> Bool {
        var rest = Array(utf8)[...]
        let wanted = Array(marks.utf8)
        while rest.count >= wanted.count {
            if rest.starts(with: wanted) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}
