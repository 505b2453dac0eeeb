import MartletWire

/// What a request says of a field that responses are chosen by, in a form in which equal meanings are equal texts
/// (RFC 9111 §4.1).
enum SelectedValue: Equatable {
    /// The request has no such field.
    case absent
    /// Its lines, combined.
    case value(String)
    /// It is a secret, and there is no way to conceal it.
    case secret

    /// The fields that hold secrets: only what ``CacheRequest/conceal`` makes of their values is kept.
    static let secretNames: Set<String> = ["authorization", "cookie", "cookie2", "proxy-authorization"]

    /// The value of a field, by its name in lower case.
    ///
    /// Lines are joined by commas, and blanks around them go. The lists of codings, character sets and languages ignore
    /// case; of the first two the order means nothing, either. All other values are taken as they are.
    static func of(_ name: String, in request: CacheRequest) -> SelectedValue {
        let lines = request.fields.rawValues(of: name)
        guard !lines.isEmpty else { return .absent }
        if secretNames.contains(name) {
            guard let conceal = request.conceal else { return .secret }
            return .value(conceal(lines.map { ByteText.latin1($0) }.joined(separator: ", ")))
        }
        switch name {
        case "accept-encoding", "accept-charset":
            return .value(members(lines).sorted().joined(separator: ","))
        case "accept-language": return .value(members(lines).joined(separator: ","))
        default:
            return .value(lines.map { ByteText.latin1(ByteClass.trimmed($0)) }.joined(separator: ", "))
        }
    }

    /// The members of a list, in lower case, without the blanks around semicolons and equals signs.
    private static func members(_ lines: [ArraySlice<UInt8>]) -> [String] {
        lines.flatMap { line in
            ElementList(line).map { member in
                ByteText.latin1(member.lazy.filter { !ByteClass.isBlank($0) }.map(ByteClass.lowercased)[...])
            }
        }
    }
}
