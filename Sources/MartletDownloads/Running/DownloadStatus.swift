import MartletClient
package import MartletTransport
import Synchronization

/// What can be seen of a download from outside, over all of its runs.
package final class DownloadStatus: Sendable {
    /// A state and which in the line of states it is.
    package struct Stamped: Equatable, Sendable {
        /// Its number in the line of states.
        package var number: UInt64
        /// The state.
        package var state: DownloadState

        package static func == (left: Stamped, right: Stamped) -> Bool { left.number == right.number }
    }

    /// The newest progress.
    package let progress = NewestValue(DownloadProgress())
    /// The newest state.
    package let states: NewestValue<Stamped>
    /// What has happened.
    package let events = DownloadEventLog()
    private let lastNumber = Atomic<UInt64>(1)

    /// The status of a download that is in a state.
    package init(_ state: DownloadState = .waiting) {
        states = NewestValue(Stamped(number: 1, state: state))
    }

    /// The newest state.
    package var state: DownloadState { states.value.state }

    /// Goes over to a state.
    package func become(_ state: DownloadState) {
        states.update {
            Stamped(number: lastNumber.add(1, ordering: .relaxed).newValue, state: state)
        }
    }
}
