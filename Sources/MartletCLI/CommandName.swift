/// The first word of a command line, which may be a mistyped name of a command.
enum CommandName {
    /// The command that a word most likely means; `nil` when it is a URL or an option.
    ///
    /// Without a command, `martlet WORD` fetches `http://WORD/`. A word of letters alone that is one or two mistakes away from
    /// a command's name is taken for that, not for a host.
    static func suggestion(for word: String, among names: [String]) -> String? {
        guard !word.isEmpty, word.utf8.allSatisfy({ (97...122).contains($0 | 0x20) || $0 == 0x2D }),
            word.first != "-"
        else { return nil }
        let distances = names.map {
            (name: $0, distance: distance(Array(word.lowercased().utf8), Array($0.utf8)))
        }
        return distances.filter { $0.distance <= ($0.name.utf8.count > 4 ? 2 : 1) }
            .min { $0.distance < $1.distance }?.name
    }

    /// How many letters must be added, left out, replaced or swapped with their neighbour to make one word of another.
    private static func distance(_ word: [UInt8], _ name: [UInt8]) -> Int {
        guard abs(word.count - name.count) <= 2 else { return .max }
        var beforeLast: [Int] = []
        var last = Array(0...name.count)
        for (row, letter) in word.enumerated() {
            var next = [row + 1]
            for (column, other) in name.enumerated() {
                var best = min(
                    next[column] + 1, last[column + 1] + 1, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == name[column - 1], other == word[row - 1] {
                    best = min(best, beforeLast[column - 1] + 1)
                }
                next.append(best)
            }
            (beforeLast, last) = (last, next)
        }
        return last[name.count]
    }
}
