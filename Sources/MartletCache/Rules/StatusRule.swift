/// What status codes mean to a cache (RFC 9110 §15.1, RFC 9111 §3, RFC 5861 §4).
package enum StatusRule {
    /// Whether a response with it may be stored, and its lifetime guessed, without it saying so.
    package static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether a response with it is never stored, whatever it says: parts, what says that nothing was modified, what a proxy says
    /// in its own name, and those that RFC 6585 §3–6 forbids to store.
    static func isNeverStored(_ status: Int) -> Bool {
        switch status {
        case 206, 304, 407, 428, 429, 431, 511: true
        default: false
        }
    }

    /// Whether it is one whose meaning for caches is known (`must-understand`, RFC 9111 §5.2.2.3). 206 is not: parts
    /// are not stored.
    package static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 409, 410, 411, 414,
            415, 421,
            422, 451, 500, 501, 502, 503, 504:
            true
        default: false
        }
    }

    /// Whether it is an error that a stale response may stand in for (`stale-if-error`).
    package static func isErrorForStale(_ status: Int) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }

    /// Whether a response to GET with it says what is there now, so that an older stored one is out of date even when
    /// the new one may not be stored: not for failures, parts, 304 and refusals that concern the request alone.
    static func supersedes(_ status: Int) -> Bool {
        switch status {
        case 206, 304: false
        case 200..<400, 404, 410: true
        default: false
        }
    }
}
