import MartletClient
import Synchronization
import SystemPackage

/// Where a managed download comes from and goes to, for those who look.
final class DownloadPlace: Sendable {
    private struct State {
        var url: HTTPURL
        var target: DownloadTarget
        var path: FilePath?

        init(_ item: DownloadItem) {
            (url, target, path) = (item.place.withoutUserInfo, item.target, item.path)
        }
    }

    /// Guards the above: the manager, and whoever looks.
    private let state: Mutex<State>

    init(_ item: DownloadItem) {
        state = Mutex(State(item))
    }

    /// Takes up what has changed.
    func update(_ item: DownloadItem) {
        let new = State(item)
        state.withLock { $0 = new }
    }

    var url: HTTPURL { state.withLock { $0.url } }
    var target: DownloadTarget { state.withLock { $0.target } }
    /// The file's name, once it is known.
    var path: FilePath? {
        state.withLock { state in
            if case .file(let path) = state.target { return state.path ?? path }
            return state.path
        }
    }
}
