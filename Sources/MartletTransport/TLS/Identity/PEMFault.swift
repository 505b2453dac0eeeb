/// A damaged object in a file.
struct PEMFault: Error, CustomStringConvertible {
    /// Such as "certificate".
    let what: String
    /// Which of them, counted from 1.
    var number = 1
    /// The line it begins on.
    var line: Int?
    let reason: String

    var description: String {
        let place = line.map { " (line \($0))" } ?? ""
        return "\(what) \(number)\(place) is damaged: \(reason)"
    }
}
