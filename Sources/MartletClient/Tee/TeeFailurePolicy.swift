/// What becomes of the other sinks of a tee when one fails.
public enum TeeFailurePolicy: String, Hashable, Sendable {
    /// They go on; the body is read for as long as one is left.
    case continueWithOthers
    /// All are abandoned, and the tee throws what the one threw.
    case stopAll
}
