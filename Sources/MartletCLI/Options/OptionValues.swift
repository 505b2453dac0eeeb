import FoundationEssentials
import Martlet

enum OptionValues {
    /// Parses seconds, with or without a fraction; 0 is no limit.
    static func seconds(_ text: String) throws(UsageError) -> Duration? {
        guard let number = Double(text), number.isFinite, number >= 0, number < 1e9 else {
            throw UsageError("“\(text)” is not a number of seconds")
        }
        return number == 0 ? nil : .milliseconds(Int64((number * 1000).rounded(.up)))
    }

    /// A duration: `90s`, `30m`, `12h`, `7d`, or seconds without a letter; above zero, at most 36,500 days.
    static func length(_ text: String) throws(UsageError) -> Duration {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = text.last.flatMap { units[$0] }
        let digits = unit == nil ? text[...] : text.dropLast()
        guard let number = Int64(digits), number > 0, number <= 36_500 * 86_400 / (unit ?? 1) else {
            throw UsageError("“\(text)” is not a duration such as 7d, 12h, 30m or 90s")
        }
        return .seconds(number * (unit ?? 1))
    }

    static func number(_ text: String) throws(UsageError) -> Int {
        guard let number = Int(text), number >= 0 else { throw UsageError("“\(text)” is not a number") }
        return number
    }

    static func number(in range: ClosedRange<Int>) -> @Sendable (_ text: String) throws(UsageError) -> Int {
        { (text) throws(UsageError) in
            guard let number = Int(text), range.contains(number) else {
                throw UsageError("“\(text)” is not a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }

    /// Bytes: `1000`, `10K`, `2M`, `1G` (units of 1,024); 0 is no limit.
    static func size(_ text: String) throws(UsageError) -> Int? {
        let units: [Character: Int] = ["k": 1 << 10, "m": 1 << 20, "g": 1 << 30]
        let unit = text.last.flatMap { units[Character($0.lowercased())] }
        let digits = unit == nil ? text[...] : text.dropLast()
        guard let number = Int(digits), number >= 0 else { throw UsageError("“\(text)” is not a number of bytes") }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        try check(!overflow, "“\(text)” is too large")
        return bytes == 0 ? nil : bytes
    }

    /// Returns a text that is not empty. `noun`, with its article, names the value in the error.
    static func text(_ text: String, _ noun: String) throws(UsageError) -> String {
        try check(!text.isEmpty, "needs \(noun)")
        return text
    }

    static func referer(_ text: String) throws(UsageError) -> String {
        try check(!text.hasSuffix(";auto"), "“;auto” is not supported")
        return try HeaderLines.checked(text)
    }

    /// Sets the format of `-w`: the text, or the contents of `@FILE`. As in curl, the file's line breaks are ignored.
    static func writeOut(_ group: inout TransferOptions, _ text: String) throws(UsageError) {
        let format = try InputFile.text(afterAtOf: text)
        group.writeOut = format.map { String($0.unicodeScalars.filter { $0 != "\n" && $0 != "\r" }) } ?? text
    }

    /// Adds cookies if the text contains an equals sign. Otherwise, or after `@`, it is the name of a file.
    static func cookie(_ group: inout TransferOptions, _ text: String) throws(UsageError) {
        if text.begins(with: "@") {
            group.cookieFiles.append(text.rest(after: text.startIndex))
        } else if text.first("=") != nil {
            group.cookies.append(try HeaderLines.checked(text))
        } else {
            group.cookieFiles.append(text)
        }
    }

    static func header(_ group: inout TransferOptions, _ line: String) throws(UsageError) {
        guard let text = try InputFile.text(afterAtOf: line) else {
            group.headerLines.append(line)
            return
        }
        // As in curl, comments and blank lines are skipped.
        let lines = text.split(whereSeparator: \.isNewline)
        group.headerLines += lines.lazy.map { String($0) }.filter {
            !$0.hasPrefix("#") && $0.contains { $0 != " " && $0 != "\t" }
        }
    }

    /// Sets the condition of `-z`. A value that is neither a date nor a file sets no condition, and causes a warning.
    static func timeCondition(_ group: inout TransferOptions, _ text: String) {
        group.timeCondition = TimeCondition(text, now: TimeCondition.present)
        guard group.timeCondition == nil else { return }
        group.global.warnings.append("option -z: “\(text)” is neither a date nor a file: the request has no condition")
    }

    /// Reads `HOST:PORT:ADDRESS[,ADDRESS]…`, optionally after a `+`; `-HOST:PORT` removes the addresses again.
    static func resolve(_ group: inout TransferOptions, _ text: String) throws(UsageError) {
        let isRemoval = text.hasPrefix("-")
        let rest = text.hasPrefix("+") || isRemoval ? text.dropFirst() : text[...]
        let parts = rest.split(separator: ":", maxSplits: isRemoval ? 1 : 2, omittingEmptySubsequences: false)
        guard parts.count == (isRemoval ? 2 : 3), !parts[0].isEmpty, let port = Int(parts[1]),
            (1...65535).contains(port)
        else { throw UsageError("“\(text)” is not HOST:PORT:ADDRESS") }
        let endpoint = Endpoint(host: parts[0].lowercased(), port: port)
        group.session.resolveOverrides[endpoint] = nil
        guard !isRemoval else { return }
        let addresses = try parts[2].split(separator: ",").map { (part) throws(UsageError) in
            let literal = part.hasPrefix("[") && part.hasSuffix("]") ? part.dropFirst().dropLast() : part
            guard let address = SocketAddress(literal: String(literal), port: port) else {
                throw UsageError("“\(part)” is not an IP address")
            }
            return address
        }
        try check(!addresses.isEmpty, "“\(text)” names no address")
        group.session.resolveOverrides[endpoint] = addresses
    }

    /// Sets the local interface or address: `name`, `address`, `if!name` or `host!address`.
    static func interface(_ group: inout TransferOptions, _ text: String) {
        let isInterface = text.hasPrefix("if!")
        let name = String(text.dropFirst(isInterface ? 3 : text.hasPrefix("host!") ? 5 : 0))
        let isAddress = !isInterface && SocketAddress(literal: name, port: 0) != nil
        group.session.socketOptions.localAddress = isAddress ? name : nil
        group.session.socketOptions.interfaceName = isAddress ? nil : name
    }

    /// Parses `HOST1:PORT1:HOST2:PORT2`; each part may be empty, and an IPv6 address is in brackets.
    static func connectTo(_ text: String) throws(UsageError) -> ConnectOverride {
        let error = UsageError("“\(text)” is not HOST1:PORT1:HOST2:PORT2")
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
        func host(_ text: String) -> String? { text.isEmpty ? nil : text.lowercased() }
        func port(_ text: String) throws(UsageError) -> Int? {
            guard text.isEmpty || Int(text).map({ (1...65535).contains($0) }) == true else { throw error }
            return Int(text)
        }
        return ConnectOverride(
            fromHost: host(parts[0]), fromPort: try port(parts[1]), toHost: host(parts[2]), toPort: try port(parts[3]))
    }

    /// The value for one of some words. The case is ignored.
    static func choice<Value>(_ text: String, _ values: KeyValuePairs<String, Value>) throws(UsageError) -> Value {
        if let value = values.first(where: { $0.key.lowercased() == text.lowercased() })?.value { return value }
        throw UsageError("“\(text)” is not one of \(values.map(\.key).joined(separator: ", "))")
    }

    /// Checks the value of `--key-type`, which has no effect: the format is detected from the key.
    static func checkKeyType(_: inout TransferOptions, _ text: String) throws(UsageError) {
        try choice(text, ["PEM": (), "DER": ()])
    }

    /// Parses pins in curl's format: hashes separated by semicolons, or a file with a key.
    static func pins(_ text: String) throws(UsageError) -> [PublicKeyPin] {
        let areHashes = text.hasPrefix("sha256//")
        do throws(TLSError) {
            guard areHashes else { return [try PublicKeyPin(of: .file(text))] }
            return try text.split(separator: ";").map { (part) throws(TLSError) in try PublicKeyPin(String(part)) }
        } catch { throw UsageError("option --pinnedpubkey: \(error)", status: areHashes ? .usage : .pinMismatch) }
    }
}

/// Lists of schemes as in curl's `--proto-redir`: elements separated by commas, applied from left to right. `=name`
/// allows only that scheme, `+name` or `name` adds it, `-name` removes it. `all` is all schemes.
enum SchemeList {
    /// Applies a list to the schemes that were allowed before.
    static func applying(_ text: String, to schemes: Set<HTTPURL.Scheme>) throws(UsageError) -> Set<HTTPURL.Scheme> {
        var schemes = schemes
        for element in text.split(separator: ",") {
            let sign = element.first.flatMap { "=+-".contains($0) ? $0 : nil }
            let name = (sign == nil ? element : element.dropFirst()).lowercased()
            let scheme = HTTPURL.Scheme(rawValue: name)
            try check(
                name == "all" || scheme != nil || others.contains(name),
                "“\(element)” is not a scheme, which may follow =, + or -")
            // Redirects to curl's other schemes are never followed: `+ftp` has no effect, and `=ftp` allows none.
            let named = name == "all" ? Set(HTTPURL.Scheme.allCases) : Set([scheme].compactMap { $0 })
            switch sign {
            case "=": schemes = named
            case "-": schemes.subtract(named)
            default: schemes.formUnion(named)
            }
        }
        return schemes
    }

    private static let others: Set<String> = [
        "dict", "file", "ftp", "ftps", "gopher", "gophers", "imap", "imaps", "ldap", "ldaps", "mqtt", "pop3", "pop3s",
        "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts", "rtsp", "scp", "sftp", "smb", "smbs", "smtp", "smtps",
        "telnet", "tftp", "ws", "wss",
    ]
}

/// Separators in the value of an option, found byte by byte or scalar by scalar: `String` combines a separator and a
/// following combining mark into one character, so that the separator would not be found.
extension StringProtocol {
    /// The index of the first of some separators.
    func first(_ marks: Unicode.Scalar...) -> Index? { unicodeScalars.firstIndex { marks.contains($0) } }

    /// The text after the separator at an index.
    func rest(after mark: Index) -> String { String(self[unicodeScalars.index(after: mark)...]) }
    func begins(with text: String) -> Bool { utf8.starts(with: text.utf8) }
    func ends(with text: String) -> Bool { utf8.reversed().starts(with: text.utf8.reversed()) }
}
