import HTTPTypes
import Martlet
import MartletWire
import SystemPackage

/// Heads as bytes again: what `-i`, `-D` and `-v` show.
enum HeadText {
    /// A head with its empty line.
    static func bytes(of head: ResponseHead) -> [UInt8] {
        var bytes = Array("\(head.version.text) \(head.status)".utf8)
        bytes += [32] + head.reasonBytes + [13, 10]
        return bytes + lines(of: head.fields) + [13, 10]
    }

    /// Fields, a line each.
    static func lines(of fields: FieldBlock) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in fields.indices {
            bytes += fields.name(at: index)
            bytes += Array(": ".utf8)
            bytes += fields.value(at: index)
            bytes += [13, 10]
        }
        return bytes
    }

    /// A head's lines behind a mark, without the values that are credentials.
    static func shown(_ bytes: [UInt8], mark: String) -> String {
        var text = ""
        let lines = bytes.split(separator: 10, omittingEmptySubsequences: false).dropLast()
        for line in lines {
            let line = String(decoding: line.last == 13 ? line.dropLast() : line, as: UTF8.self)
            text += "\(mark) \(TerminalText.shown(redacted(line)))\n"
        }
        return text
    }

    private static let secrets: Set = [
        "authorization", "proxy-authorization", "cookie", "set-cookie", "set-cookie2",
    ]

    /// Whether the values of a field are credentials, by its name in any case.
    static func isSecret(_ name: some StringProtocol) -> Bool { secrets.contains(name.lowercased()) }

    private static func redacted(_ line: String) -> String {
        guard let colon = line.firstIndex(of: ":"), isSecret(line[..<colon]) else { return line }
        return "\(line[..<colon]): ***"
    }
}

/// The lines of `-H`: fields to send, and fields not to send.
struct HeaderLines: Sendable {
    /// Fields to send, in order.
    private(set) var fields = HTTPFields()
    /// Defaults that are left out.
    private(set) var omitted: Set<HTTPField.Name> = []

    /// Reads lines: `Name: value`, `Name;` for an empty value, `Name:` to leave a default out.
    init(_ lines: [String]) throws(UsageError) { for line in lines { try add(line) } }

    /// Reads one more line.
    mutating func add(_ line: String) throws(UsageError) {
        guard let mark = line.first(":", ";") else { throw UsageError("option -H: “\(line)” has no colon") }
        let text = line[..<mark]
        guard let name = HTTPField.Name(String(text)) else {
            throw UsageError("option -H: “\(text)” is not a field name")
        }
        let value = String(line.rest(behind: mark).unicodeScalars.drop { $0 == " " || $0 == "\t" })
        guard HeaderLines.isValid(value) else {
            throw UsageError("option -H: the value of \(name.rawName) has a control character")
        }
        if line.unicodeScalars[mark] == ";" {
            guard value.isEmpty else { throw UsageError("option -H: “\(line)” has no colon") }
            fields.append(HTTPField(name: name, value: ""))
        } else if value.isEmpty {
            guard name != .contentLength, name != .transferEncoding else {
                throw UsageError("option -H: \(name.rawName) frames the body and cannot be left out")
            }
            omitted.insert(name)
        } else {
            fields.append(HTTPField(name: name, value: value))
        }
    }

    /// A text without blanks around it.
    static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { start[...$0] } ?? ""
    }

    /// The value of an option that becomes a field's.
    static func checked(_ value: String, _ option: String) throws(UsageError) -> String {
        guard isValid(value) else { throw UsageError("option \(option): the value has a control character") }
        return value
    }

    /// Control characters would split the request.
    static func isValid(_ value: some StringProtocol) -> Bool {
        value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 9 }
    }

    /// Sets a field unless the lines did, or took it out.
    mutating func setDefault(_ name: HTTPField.Name, _ value: String) {
        guard fields[name] == nil, !omitted.contains(name) else { return }
        fields.append(HTTPField(name: name, value: value))
    }

    /// Sets what other options than `-H` say of the page before, the program, and cookies.
    mutating func setDefaults(_ options: TransferOptions) {
        if let referer = options.referer, !referer.isEmpty { setDefault(.referer, referer) }
        if let agent = options.userAgent {
            if agent.isEmpty { omitted.insert(.userAgent) } else { setDefault(.userAgent, agent) }
        }
        if !options.cookies.isEmpty { setDefault(.cookie, options.cookies.joined(separator: "; ")) }
    }

    /// Adds a field, whatever the lines say.
    mutating func append(_ name: HTTPField.Name, _ value: String) {
        fields.append(HTTPField(name: name, value: value))
    }
}

/// The file of `-D`; `-` is standard output.
struct HeadsFile: Sendable {
    let name: String

    init(_ name: String) { self.name = name }

    /// Makes the file, or empties it, for the heads of a group.
    func begin() async throws(UsageError) {
        guard name != "-" else { return }
        do throws(OutputError) {
            try await write([], .truncate)
        } catch {
            throw UsageError("option -D: \(error)", status: .writeFailed)
        }
    }

    /// Writes heads at the end of what is there.
    func write(_ bytes: [UInt8]) async throws(OutputError) {
        guard name != "-" else { return try await Console.write(bytes) }
        try await write(bytes, .append)
    }

    private func write(_ bytes: [UInt8], _ mode: FileDescriptor.OpenOptions) async throws(OutputError) {
        try await Console.write(to: name) { [name] in
            let file = try FileDescriptor.output(name, mode)
            try file.closeAfter { _ = try file.writeAll(bytes) }
        }
    }
}

/// A head that went by before the answer that counts.
enum PassedHead: Sendable {
    /// Of a request, as its bytes.
    case sent([UInt8])
    /// Of a proxy's answer to CONNECT, or of an answer after which the same request was sent once more.
    case received(ResponseHead)

    /// What was sent; nil for an answer.
    var sentBytes: [UInt8]? { if case .sent(let bytes) = self { bytes } else { nil } }

    /// What was received; nil for a request.
    var receivedBytes: [UInt8]? {
        if case .received(let head) = self { HeadText.bytes(of: head) } else { nil }
    }
}

extension [PassedHead] {
    /// The request that was sent last, as its bytes.
    var lastSentBytes: [UInt8]? { lazy.compactMap(\.sentBytes).last }
}

/// What `-v` says of a connection.
enum VerboseText {
    /// Where it goes to, and what TLS agreed on.
    static func connection(_ metrics: HTTPMetrics) -> String {
        guard let connection = metrics.connection else { return "" }
        guard !metrics.isConnectionReused else {
            return "* Re-using the connection to \(connection.remoteAddress)\n"
        }
        var text = "* Connected to \(connection.remoteAddress) from \(connection.localAddress)\n"
        if let tls = connection.tls {
            text += "* \(tls.version), \(tls.cipher)\(tls.isResumed ? ", resumed" : "")\n"
            text += "* ALPN: \(tls.applicationProtocol ?? "no protocol")\n"
        }
        return text
    }

    /// What the cache did, where there is one.
    static func cache(_ status: String?) -> String { status.map { "* Cache-Status: \($0)\n" } ?? "" }
}
