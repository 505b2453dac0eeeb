import MartletCache
import MartletWire

extension FuzzEntry {
    /// `Vary` and the request that it selects by: lines of `Vary`, an empty line, and lines of one request field.
    ///
    /// The request of a response selects it again, and a request with another value does not. Secrets are not stored.
    static let vary = FuzzEntry("vary") { (bytes) throws(FuzzFinding) in
        let (head, tail) = halves(bytes)
        let fields = CacheFields.lines(head, as: "Vary")
        let rule = VaryRule(fields)
        guard case .fields(let names) = rule else {
            try require(rule.selections(of: CacheFields.request(FieldBlock())) == nil, "it selects")
            return
        }
        try require(names == Set(names).sorted() && names.count <= VaryRule.nameLimit, "\(names)")
        for name in ["accept-encoding", "accept-language", "cookie", names.first ?? "x"] {
            try checkSelection(rule, names, CacheFields.lines(tail, as: name))
        }
    }

    private static func checkSelection(
        _ rule: VaryRule, _ names: [String], _ requestFields: FieldBlock
    ) throws(FuzzFinding) {
        let request = CacheFields.request(requestFields)
        guard let selections = rule.selections(of: request) else { return }
        try require(selections.map(\.name) == names, "\(selections) for \(names)")
        let size = selections.reduce(0) { $0 + ($1.value?.utf8.count ?? 0) }
        try require(size <= VaryRule.selectionLimit, "\(size) bytes")
        let head = StoredHead(
            key: request.key, status: 200, reason: "", fields: FieldBlock(), selections: selections,
            requestTime: CacheFields.start, responseTime: CacheFields.start)
        try require(VaryRule.matches(head, request), "what it was made for does not select it")
        let without = CacheFields.request(FieldBlock())
        let isSame = selections.allSatisfy { $0.value == nil }
        try require(VaryRule.matches(head, without) == isSame, "the absent and the present are the same")
        for selection in selections where selection.name == "cookie" {
            try require(selection.value?.hasPrefix("<") ?? true, "a secret is kept")
        }
        // The name in capitals is the same, and another line changes the value.
        var more = requestFields
        guard let name = selections.first(where: { $0.value != nil })?.name else { return }
        more.append(name: name.uppercased(), value: "another-value")
        try require(!VaryRule.matches(head, CacheFields.request(more)), "a further line is overlooked")
    }

    private static func halves(_ bytes: [UInt8]) -> ([UInt8], [UInt8]) {
        var index = 0
        while index + 1 < bytes.count {
            if bytes[index] == ByteClass.lineFeed, bytes[index + 1] == ByteClass.lineFeed {
                return (Array(bytes[..<index]), Array(bytes[(index + 2)...]))
            }
            index += 1
        }
        return (bytes, [])
    }
}
