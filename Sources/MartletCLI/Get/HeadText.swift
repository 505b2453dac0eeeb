import MartletWire

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
        guard let colon = line.firstIndex(of: ":"), isSecret(line[..<colon]) else {
            return line
        }
        return "\(line[..<colon]): ***"
    }
}
