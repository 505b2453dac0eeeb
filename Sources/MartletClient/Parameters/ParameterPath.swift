/// Where in a tree of parameters something stands, as in `filter[price][0]`.
struct ParameterPath {
    /// The names and numbers on the way, outermost first.
    private(set) var steps: [String] = []

    /// The top.
    init() {}

    /// The place of a coding path.
    init(_ codingPath: [any CodingKey]) {
        steps = codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
    }

    /// A value by its name.
    /// - Throws: Where it would be too deep.
    func inside(_ key: String) throws(ParameterError) -> ParameterPath {
        guard steps.count < ParameterValue.depthLimit else { throw ParameterError(.tooDeep, at: self) }
        var path = self
        path.steps.append(key)
        return path
    }

    /// A value by its number.
    /// - Throws: Where it would be too deep.
    func inside(_ index: Int) throws(ParameterError) -> ParameterPath {
        try inside(String(index))
    }

    /// The path in words, cut where it is long.
    var text: String {
        guard let first = steps.first else { return "at the top" }
        var text = first
        for step in steps.dropFirst() {
            text += "[\(step)]"
            if text.utf8.count > 200 { return "\(text)…" }
        }
        return text
    }
}
