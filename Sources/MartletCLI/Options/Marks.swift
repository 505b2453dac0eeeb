/// Characters that mean something in the value of an option, looked for by themselves: a combining mark behind one makes a
/// character of the two to `String`, which would not find the first.
extension StringProtocol {
    /// Where a mark stands first.
    func first(_ marks: Unicode.Scalar...) -> Index? {
        unicodeScalars.firstIndex { marks.contains($0) }
    }

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
