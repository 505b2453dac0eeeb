/// How short of memory the machine is, or the group of processes this one belongs to.
public enum MemoryPressure: Int, Comparable, CaseIterable, Codable, Sendable {
    /// There is enough.
    case normal
    /// Tasks wait for memory now and then: what can be had again should be let go.
    case warning
    /// All tasks wait for memory much of the time: whoever keeps some risks being ended.
    case critical

    /// Orders by how bad it is.
    public static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
        left.rawValue < right.rawValue
    }
}
