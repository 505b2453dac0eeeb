/// What the index remembers of an entry from run to run.
package struct IndexRecord: Hashable, Sendable {
    var name: EntryName
    /// When it was used last, or stored, as the policy has it: a count of uses and no time.
    var tick: UInt64
    /// Whether the policy had marked it.
    var isMarked: Bool
}
