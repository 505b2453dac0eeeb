/// How names that have a quote in them stand between quotes in the head of a part.
package enum MultipartQuoting: Hashable, Sendable {
    /// `"`, CR and LF percent-encoded, as browsers do (WHATWG HTML §4.10.21.8).
    case percent
    /// A backslash before `"` and `\`, as in other fields (RFC 9110 §5.6.4), and as curl's `--form-escape` has it; CR and LF
    /// cannot be sent.
    case backslash
}
