/// Conversions of any duration, settings at their extremes among them.
///
/// `Duration.components` and the sum, the double and the fraction of a great duration trap. Nothing outside this file
/// may take a duration apart, and a duration from a setting is ``bounded`` before it is calculated with.
extension Duration {
    /// The longest span that a setting means: a hundred years.
    package static let longest = Duration.seconds(100 * 365 * 86_400)

    /// The nearest span from zero to ``longest``.
    package var bounded: Duration { min(max(self, .zero), .longest) }

    /// The whole seconds, or the nearest number that there is.
    package var wholeSeconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000_000_000_000) }

    /// The whole milliseconds, or the nearest number that there is.
    package var wholeMilliseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000_000_000) }

    /// The whole nanoseconds, or the nearest number that there is.
    package var wholeNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }
}
